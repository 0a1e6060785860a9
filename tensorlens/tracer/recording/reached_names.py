"""Notes the names under which running functions reach the tensors of modules: `model.fc.weight`, where `model` is a
variable of `main()`. At the end of a run such a function has returned, and its names are gone.

It looks where training shows itself: when an optimizer is made, and at the first backward pass of each line.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

import torch

from tensorlens.journal.rows import NOTICED
from tensorlens.tracer.frames.local_tensors import names_of
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.module_tree import module_tensors, own_attributes

MAX_LOOKS = 50
MAX_NAMED = 5_000  # tensors
_DEPTH = 2  # attributes and items on the way to a module


class ReachedNames:
    """The tensors of modules that have a name already, and the places looked at."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._looked: set[tuple[CodeType, int]] = set()
        self._named: set[tuple[str, int]] = set()  # function, tensor

    def look(self, frame: FrameType | None) -> None:
        """Look at the functions that are running, from `frame` outwards, once for each place."""
        sites = self._recorder.sites
        frame = sites.user_frame(frame)
        if frame is None or len(self._looked) >= MAX_LOOKS or (frame.f_code, frame.f_lasti) in self._looked:
            return
        self._looked.add((frame.f_code, frame.f_lasti))
        with ErrorGuard(self._recorder, "the names of parameters", frame), torch._C.DisableTorchFunction():
            while frame is not None:
                self._note(frame)
                frame = sites.user_frame(frame.f_back)

    def _note(self, frame: FrameType) -> None:
        scope, found = frame.f_code.co_qualname, []
        for name, value in names_of(frame):
            if not name.startswith("__") and len(self._named) < MAX_NAMED:
                for path, tensor in _of_modules(self._recorder, name, value, _DEPTH):
                    number = self._recorder.tensor_ids.find(tensor)
                    if number is not None and (scope, number) not in self._named:
                        self._named.add((scope, number))
                        found.append((path, number))
        if found:
            names, numbers = zip(*found, strict=True)
            self._recorder.rows.append((NOTICED, "reached", scope, names, numbers))


def _of_modules(recorder: Any, path: str, value: Any, depth: int) -> Any:
    """(path, tensor) of the modules that a value is or holds, by the attributes of the program's own objects."""
    if issubclass(type(value), torch.nn.Module):
        yield from module_tensors(path, value)
    elif depth and type(value) in (list, tuple, dict):
        items = value.items() if type(value) is dict else enumerate(value)
        for key, item in list(items)[:16]:
            if type(key) in (str, int):
                yield from _of_modules(recorder, f"{path}[{key!r}]", item, depth - 1)
    elif depth:
        for name, item in own_attributes(recorder.sites.is_user, value):
            yield from _of_modules(recorder, f"{path}.{name}", item, depth - 1)
