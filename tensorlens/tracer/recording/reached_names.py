"""Finds the names by which running functions reach the tensors of modules: `model.fc.weight` in `main()`.

At the end of a run such a function has returned, and its names are gone. So they are read when an optimizer is made,
and at the first backward pass of each line.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FrameType

import torch

from tensorlens.journal.rows import NONE
from tensorlens.records.observations import Reached
from tensorlens.tracer.frames.call_sites import Sites
from tensorlens.tracer.frames.local_tensors import names_of
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.module_tree import Limit, module_tensors, own_attributes
from tensorlens.tracer.recording.tensor_states import TensorStates

MAX_LOOKS = 50
MAX_NAMED = 5_000  # tensors
_DEPTH = 2  # attributes and items before a module


def known_site(sites: Sites, frame: FrameType | None) -> int:
    """Returns the site of the innermost user frame from `frame` outwards; `NONE` if it has none yet."""
    if sites.compiled is not None:
        site = sites.compiled.site(frame)
        return NONE if site is None else site
    codes = sites.by_id
    while frame is not None and id(frame.f_code) in codes:
        offsets = codes[id(frame.f_code)]
        if offsets is not None:
            return offsets.get(frame.f_lasti, NONE)
        frame = frame.f_back
    return NONE


class ReachedNames:
    """The names that are already written, and the places where they were read."""

    def __init__(self, recorder: TensorStates) -> None:
        self._recorder = recorder
        self._places: set[tuple[CodeType, int]] = set()
        self.looked: set[int] = set()  # the sites of places that need no look any more
        self._named: set[tuple[str, int, str]] = set()  # function, tensor, and its path if each one is wanted
        self._limit = Limit()
        self.every_path = False  # False: one name for each tensor in a function

    def look(self, frame: FrameType | None, site: int = NONE) -> None:
        """Reads the names of the running functions from `frame` outwards, once for each place.

        `site`: that of the place, if it is known.
        """
        sites = self._recorder.sites
        if site in self.looked:  # the hash of a code object is slow
            return
        if site != NONE:
            self.looked.add(site)
        frame = sites.user_frame(frame)
        if frame is None or len(self._places) >= MAX_LOOKS or (frame.f_code, frame.f_lasti) in self._places:
            return
        self._places.add((frame.f_code, frame.f_lasti))
        with ErrorGuard(self._recorder, "the names of parameters", frame), torch._C.DisableTorchFunction():
            while frame is not None:
                self._write_names(frame)
                frame = sites.user_frame(frame.f_back)

    def _write_names(self, frame: FrameType) -> None:
        scope, reached = frame.f_code.co_qualname, []
        for name, value in names_of(frame):
            if not name.startswith("__") and len(self._named) < MAX_NAMED:
                for path, tensor in self._of_modules(name, value, _DEPTH):
                    number = self._recorder.tensor_ids.find(tensor)
                    key = (scope, number or 0, path if self.every_path else "")
                    if number is not None and key not in self._named:
                        self._named.add(key)
                        reached.append((path, number))
        if reached:
            names, numbers = zip(*reached, strict=True)
            self._recorder.rows.write_fact(Reached, scope, names, numbers)

    def _of_modules(self, path: str, value: object, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
        """Finds (path, tensor) of the modules that a value is or contains, also in attributes of the user's objects."""
        if issubclass(type(value), torch.nn.Module):
            yield from module_tensors(path, value, self._limit)
        elif depth:
            parts = self._limit.items(value)
            if parts is None:
                parts = [(f".{name}", item) for name, item in own_attributes(self._recorder.sites.is_user, value)]
            for step, item in parts:
                yield from self._of_modules(path + step, item, depth - 1)
