"""Compares the parts of NumPy arrays that a line makes tensors on, each time with what they were the time before."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import torch

from tensorlens.records.training_arrays import GivenArray
from tensorlens.records.training_samples import ReshapedArray
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.arrays_beside import AnswersLeaving
from tensorlens.tracer.training.kept_entries import KeptEntries

_MOST_ARRAYS = 64
_MOST_PARTS = 100_000  # of one array
_MOST_BYTES = 1 << 18  # of one part
_MOST_RESHAPES = 3  # that are noted of a line
_MOST_LIVE = 256  # tensors of one array
Part = tuple[int, int]  # address, bytes


@dataclass(frozen=True, slots=True)
class _Made:
    """A tensor that a line made on a part of an array."""

    tensor: weakref.ref[torch.Tensor]
    part: Part
    values: int  # a checksum
    site: int | None


@dataclass(slots=True)
class _Array:
    ref: weakref.ref[Any]
    site: int | None  # the line that made a tensor on it first
    tensor: int  # the first one
    parts: dict[Part, int] = field(default_factory=dict)  # a checksum of the values at the last time
    given: int = 0
    changed: int = 0
    live: list[_Made] = field(default_factory=list)
    outdated: int = 0
    outdated_site: int | None = None

    def count_outdated(self) -> None:
        """Counts the live tensors that were made on a part before it got its last values."""
        self.live = [each for each in self.live if each.tensor() is not None]
        sites = Counter(each.site for each in self.live if each.values != self.parts[each.part])
        if sites.total() > self.outdated:
            self.outdated, self.outdated_site = sites.total(), sites.most_common(1)[0][0]


class GivenArrays:
    """The arrays of a run on whose memory tensors were made."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._arrays: dict[int, _Array] = {}  # by the id of the array that owns the memory
        self._entries = KeptEntries(recorder)
        self._reshaped = Counter[tuple[int | None, int, tuple[int, ...]]]()
        self.answers = AnswersLeaving(recorder)

    def given(self, array: Any, made: tuple[int, torch.Tensor], site: int | None) -> None:
        """Notes a tensor, with its number, that is made on an array."""
        whole = _whole(array)
        if whole is not None and whole.shape != array.shape and whole.nbytes == array.nbytes:
            self._note_reshape(whole, array, made[0], site)
        if whole is None or array.nbytes > _MOST_BYTES or not array.flags.c_contiguous or not array.nbytes:
            return
        known = self._arrays.get(id(whole))
        if known is None or known.ref() is not whole:
            if len(self._arrays) >= _MOST_ARRAYS:
                self._arrays = {key: each for key, each in self._arrays.items() if each.ref() is not None}
            if len(self._arrays) >= _MOST_ARRAYS:
                return
            known = self._arrays[id(whole)] = _Array(weakref.ref(whole), site, made[0])
        part = array.__array_interface__["data"][0], array.nbytes
        before, now = known.parts.get(part), crc32(array)
        if before is None and len(known.parts) >= _MOST_PARTS:
            return
        known.parts[part] = now
        known.given += before is not None
        known.changed += before not in (None, now)
        is_due = known.given % _MOST_LIVE == 0 if len(known.live) >= _MOST_LIVE else _is_power_of_two(known.changed)
        if is_due and before != now:
            known.count_outdated()
        if len(known.live) < _MOST_LIVE:
            known.live.append(_Made(weakref.ref(made[1]), part, now, site))

    def _note_reshape(self, whole: Any, array: Any, tensor: int, site: int | None) -> None:
        """Notes an array that has all numbers of another one in their order; the first ones of a line."""
        flags, same = (each.flags.c_contiguous for each in (whole, array)), whole.dtype == array.dtype
        key = site, whole.ndim, array.shape[-2:]
        if all(flags) and same and self._reshaped[key] < _MOST_RESHAPES and len(self._reshaped) < _MOST_ARRAYS:
            self._reshaped[key] += 1
            shapes = tuple(map(int, whole.shape)), tuple(map(int, array.shape))
            self._recorder.rows.write_fact(ReshapedArray, tensor, *shapes)

    def write(self, number: int) -> None:
        """Writes what was found so far, also about arrays that memories keep."""
        self._entries.write(number)
        for each in self._arrays.values():
            if each.changed:
                each.count_outdated()
                counts = len(each.parts), each.given, each.changed, each.outdated
                self._recorder.rows.write_fact(GivenArray, number, each.site, each.tensor, *counts, each.outdated_site)


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _whole(array: Any) -> Any:
    """Returns the array that owns the memory of an array; None if it is no array of NumPy."""
    if not hasattr(array, "__array_interface__") or not hasattr(array, "flags"):
        return None
    while type(array.base) is type(array):
        array = array.base
    return array
