"""Compares the two runs of a checkpointed function, and checks that backward uses what the second run saved.

A checkpoint compares the shapes and types of what its two runs save. This module compares a few values of each saved
tensor as well, and reports the first that differ. PyTorch does not check the version of what the second run saves:
here the versions are noted when the tensors are saved and compared when backward uses them.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch.utils import checkpoint

from tensorlens.journal.rows import NONE
from tensorlens.records.observations import RECOMPUTED, Recomputed, StaleSavedTensor
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch, has_torch_dispatch
from tensorlens.tracer.isolation.patch import Patch, existing, observe
from tensorlens.tracer.isolation.readable import may_read
from tensorlens.tracer.isolation.stack_room import ROOM
from tensorlens.tracer.isolation.torch_features import HASH
from tensorlens.tracer.isolation.torch_originals import (
    clone,
    detach,
    every,
    is_contiguous,
    isclose,
    numel,
    reshape,
    some,
)
from tensorlens.tracer.recording.recorder import Recorder, version_of
from tensorlens.tracer.recording.tensor_text import SHOWN_VALUES, short_text

Frame = Any  # `_CheckpointFrame` of `torch.utils.checkpoint`, which has no types
SAMPLES = 64
CLOSE = 1e-3  # two runs on other hardware paths may round differently
_SAMPLES, _SAVED = "_tensorlens_samples", "_tensorlens_saved"
_WHAT = "what a checkpoint saves"


@dataclass(slots=True)
class _Saved:
    """A tensor that the second run saves, as it is at that moment."""

    kept: weakref.ref[torch.Tensor]  # the checkpoint's own tensor on the same memory
    tensor: int
    version: int
    sequence: int  # of the node that saves it
    values: torch.Tensor | None
    hash: torch.Tensor | None


@observe
def _forward_hook(recorder: Recorder, original: Function) -> Function:
    """Samples the tensors that the first run saves."""

    def __init__(_: FrameType, self: checkpoint._checkpoint_hook, frame: Frame) -> None:
        original(self, frame)
        samples: list[torch.Tensor | None] = []
        setattr(frame, _SAMPLES, samples)
        setattr(frame, _SAVED, {})
        self.pack_hook = _looking_first(recorder, self.pack_hook, lambda tensor: samples.append(_sample(tensor)))
        self.unpack_hook = _checked(recorder, self.unpack_hook, weakref.ref(frame))

    return __init__


@observe
def _recomputation_hook(recorder: Recorder, original: Function) -> Function:
    """Compares the tensors that the second run saves with those of the first."""

    def __init__(_: FrameType, self: checkpoint._recomputation_hook, frame_ref: Callable[[], Frame], gid: int) -> None:
        original(self, frame_ref, gid)
        reported: list[int] = []

        def compare(tensor: torch.Tensor) -> None:
            frame = frame_ref()
            samples = getattr(frame, _SAMPLES, ())
            position = frame.recomp_counter[gid]
            if reported or position >= len(samples) or _close(samples[position], now := _sample(tensor)):
                return
            reported.append(position)
            values = _text(samples[position]), _text(now)
            recorder.rows.write_fact(Recomputed, position, *values, _keeps_random(frame))

        pack = _looking_first(recorder, self.pack_hook, compare)
        self.pack_hook = _noting_versions(recorder, pack, frame_ref, gid)

    return __init__


def _noting_versions(recorder: Recorder, pack: Function, frame_ref: Callable[[], Frame], gid: int) -> Function:
    """Makes the hook that saves a tensor note its version."""

    @functools.wraps(pack)
    def packing(tensor: torch.Tensor) -> object:
        position = frame_ref().recomp_counter[gid]
        try:
            return pack(tensor)
        finally:  # saving the last one ends the second run by an exception
            with ErrorGuard(recorder, _WHAT), torch._C.DisableTorchFunction(), torch.no_grad(), MutedDispatch():
                _note(recorder, frame_ref(), gid, position, tensor)

    return packing


def _note(recorder: Recorder, frame: Frame, gid: int, position: int, tensor: torch.Tensor) -> None:
    """Remembers the version and the values of the tensor that the second run saves at `position`."""
    holder = frame.weak_holders[position]() if position < len(frame.weak_holders) else None
    kept = None if holder is None else frame.recomputed[gid].get(holder.handles.get(gid))
    version = version_of(tensor)
    if kept is None or version == NONE or has_torch_dispatch(tensor):
        return
    number, sequence = recorder.tensor_ids.id_of(tensor), torch._C._autograd._get_sequence_nr() - 1
    saved = _Saved(weakref.ref(kept), number, version, sequence, _sample(tensor), _hash(tensor))
    getattr(frame, _SAVED, {})[id(kept)] = saved


def _checked(recorder: Recorder, unpack: Function, frame_ref: Callable[[], Frame]) -> Function:
    """Makes the hook that hands a saved tensor to backward check its version."""

    @functools.wraps(unpack)
    def unpacking(holder: object) -> object:
        with ROOM:
            result = unpack(holder)
        with ErrorGuard(recorder, _WHAT), torch._C.DisableTorchFunction(), torch.no_grad(), MutedDispatch():
            saved = getattr(frame_ref(), _SAVED, {}).pop(id(result), None)
            if saved is not None and saved.kept() is result and version_of(result) != saved.version:
                _report_changed(recorder, saved, result)
        return result

    return unpacking


def _report_changed(recorder: Recorder, saved: _Saved, now: torch.Tensor) -> None:
    """Writes a row for a tensor that was changed in place since the second run saved it, if its values differ."""
    then, values = saved.values, _sample(now)
    before, after = "", short_text(now)
    differs = None if then is None or values is None else ~isclose(then, values, rtol=CLOSE, atol=0.0, equal_nan=True)
    if differs is not None and then is not None and values is not None and some(differs):
        before, after = _text(then[differs]), _text(values[differs])
    elif (differs is not None and numel(now) <= SAMPLES) or saved.hash is None or bool(saved.hash == _hash(now)):
        return
    versions = (saved.version, version_of(now))
    recorder.rows.write_fact(
        StaleSavedTensor, None, "", saved.sequence, RECOMPUTED, saved.tensor, versions, before, after
    )


def _looking_first(recorder: Recorder, pack: Function, look: Callable[[torch.Tensor], None]) -> Function:
    """Makes a pack hook give each tensor to `look` before it packs it."""

    @functools.wraps(pack)
    def packing(tensor: torch.Tensor) -> object:
        with ErrorGuard(recorder, _WHAT), torch._C.DisableTorchFunction(), torch.no_grad(), MutedDispatch():
            look(tensor)
        return pack(tensor)

    return packing


def _sample(tensor: torch.Tensor) -> torch.Tensor | None:
    """Copies some of a tensor's values, evenly spread. Returns None if reading them would cost too much."""
    if not may_read(tensor):
        return None
    flat = reshape(detach(tensor) if is_contiguous(tensor) else detach(tensor)[..., :SAMPLES], (-1,))
    return clone(flat[:: max(1, math.ceil(numel(flat) / SAMPLES))])


def _hash(tensor: torch.Tensor) -> torch.Tensor | None:
    """Returns a number that depends on all values of a tensor: equal tensors have equal numbers."""
    if not may_read(tensor) or numel(tensor) <= SAMPLES or HASH is None:
        return None
    try:
        return HASH(detach(tensor))
    except (RuntimeError, NotImplementedError):  # a dtype that it does not take
        return None


def _close(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None or one.shape != other.shape or one.dtype != other.dtype:
        return True  # not comparable, or PyTorch raises by itself
    return bool(every(isclose(one, other, rtol=CLOSE, atol=1e-6, equal_nan=True)))


def _text(sample: torch.Tensor | None) -> str:
    return "" if sample is None else short_text(sample[:SHOWN_VALUES])


def _keeps_random(frame: Frame) -> bool:
    """Returns whether the checkpoint restores the state of the random generators for its second run."""
    run = frame.recompute_fn
    cells = dict(zip(run.__code__.co_freevars, run.__closure__ or (), strict=True))
    return bool(cells["preserve_rng_state"].cell_contents) if "preserve_rng_state" in cells else True


PATCHES = existing(
    (
        Patch(checkpoint._checkpoint_hook, "__init__", _forward_hook),
        Patch(checkpoint._recomputation_hook, "__init__", _recomputation_hook),
    )
)
