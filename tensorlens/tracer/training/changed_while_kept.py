"""Notes tensors that a list or dict of a running function holds while an activation changes them in place."""

from __future__ import annotations

import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import Any

import torch

from tensorlens.journal.rows import NONE
from tensorlens.records.kept_tensors import KeptThenChanged
from tensorlens.tracer.frames.local_tensors import names_of
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import clone, detach, equal, numel, untyped_storage
from tensorlens.tracer.recording.recorder import Recorder

_OPTIMIZED = 1  # flag of the code of a function
_MOST_FRAMES = 3
_MOST_ITEMS = 64
_MOST_ELEMENTS = 1 << 24
_MOST_FACTS = 8  # of one place
_MOST_WAITING = 256
_MOST_LOOKS = 1_000  # from one line that find nothing
_CONTAINERS = (list, dict, OrderedDict)
Held = tuple[str, str, torch.Tensor]  # a variable, the place in its value ("" if it is the value), what is there


@dataclass(frozen=True, slots=True)
class Kept:
    """An item of a list or dict of a frame, with its values before a change."""

    frame: int  # its id
    site: int
    name: str
    key: str
    item: torch.Tensor
    before: torch.Tensor


@dataclass(frozen=True, slots=True)
class _Changed:
    """An item of a list or dict of a frame that was changed, until the next change in place of the frame."""

    item: weakref.ref[torch.Tensor]
    name: str
    key: str
    numbers: tuple[int, int]  # of the item, and of what was changed


class KeptResults:
    """Looks at the variables of the functions around each such change."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._plain = Counter[Function]()
        self._facts = Counter[tuple[int, str, str, bool]]()
        self._waiting: dict[int, list[_Changed]] = {}  # by the id of the frame
        self._looks = Counter[int]()  # those that found nothing since the last that did, by the site of the line

    def count_plain(self, func: Function) -> int:
        """Counts a call that changes nothing. Returns how many of the function came before a change in place; -1 if
        one has come."""
        if self._plain[func] >= 0:
            self._plain[func] += 1
        return self._plain[func]

    def before(self, func: Function, tensor: object, frame: FrameType | None) -> Kept | None:
        """Returns what holds a tensor that is about to be changed, if it is one item of a list or dict."""
        self._plain[func] = -1
        if type(tensor) is not torch.Tensor or not is_measurable(tensor) or numel(tensor) > _MOST_ELEMENTS:
            return None
        line = self._recorder.sites.site_or_outside(frame)
        if self._looks[line] >= _MOST_LOOKS and not self._waiting:
            return None
        found: list[tuple[FrameType, Held]] = []
        for _ in range(_MOST_FRAMES):
            frame = self._recorder.sites.user_frame(frame)
            if frame is None:
                break
            if frame.f_code.co_flags & _OPTIMIZED:
                names = names_of(frame)
                self._settle(tensor, frame, names)
                found += [(frame, each) for each in _held(names, tensor) if each[1]]
            frame = frame.f_back
        self._looks[line] = 0 if found else self._looks[line] + 1
        if len(found) != 1:
            return None
        around, (name, key, item) = found[0]
        site = self._recorder.sites.site_of(around)
        if site == NONE or self._facts[site, name, key, False] >= _MOST_FACTS:
            return None
        with self._recorder.quiet():
            return Kept(id(around), site, name, key, item, clone(detach(tensor)))

    def after(self, kept: Kept, tensor: torch.Tensor) -> None:
        """Writes a fact if the values of a tensor have changed."""
        with self._recorder.quiet():
            if equal(kept.before, detach(tensor)):
                return
        numbers = self._recorder.tensor_ids.id_of(kept.item), self._recorder.tensor_ids.id_of(tensor)
        self._write(kept.site, numbers, (kept.name, kept.key, False))
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.clear()
        changed = _Changed(weakref.ref(kept.item), kept.name, kept.key, numbers)
        self._waiting.setdefault(kept.frame, []).append(changed)

    def _settle(self, tensor: torch.Tensor, frame: FrameType, names: list[tuple[str, Any]]) -> None:
        """Notes what only a list or dict of a frame holds since it was changed."""
        left: list[_Changed] = []
        for each in self._waiting.pop(id(frame), ()):
            item = each.item()
            if item is None:
                continue
            if _is_same_memory(item, tensor):
                left.append(each)  # it is changed once more
            elif [(name, key) for name, key, _ in _held(names, item)] == [(each.name, each.key)]:
                site = self._recorder.sites.site_of(frame)
                self._write(site, each.numbers, (each.name, each.key, True))
        if left:
            self._waiting[id(frame)] = left

    def _write(self, site: int, numbers: tuple[int, int], place: tuple[str, str, bool]) -> None:
        if site == NONE or self._facts[site, *place] >= _MOST_FACTS:
            return
        self._facts[site, *place] += 1
        name, key, alone = place
        self._recorder.rows.write_fact(KeptThenChanged, site, *numbers, name, key, alone)


def _held(names: list[tuple[str, Any]], tensor: torch.Tensor) -> Iterator[Held]:
    """Yields the variables, and the items of those that are lists and dicts, that have the memory of a tensor."""
    for name, value in names:
        if type(value) in _CONTAINERS:
            pairs = enumerate(value[:_MOST_ITEMS]) if type(value) is list else islice(value.items(), _MOST_ITEMS)
            yield from (
                (name, repr(key), item)
                for key, item in list(pairs)
                if type(key) in (int, str) and _is_same_memory(item, tensor)
            )
        elif _is_same_memory(value, tensor):
            yield name, "", value


def _is_same_memory(value: object, tensor: torch.Tensor) -> bool:
    if value is tensor:
        return True
    if type(value) is not torch.Tensor or not is_measurable(value):
        return False
    return untyped_storage(value).data_ptr() == untyped_storage(tensor).data_ptr()
