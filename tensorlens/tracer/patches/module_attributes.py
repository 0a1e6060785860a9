"""What holds tensors in torch's Python code and is not seen by the mode: modules and gradient scalers."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import torch

from tensorlens.journal.rows import ASSIGNMENT
from tensorlens.tracer.frames.failing_call import tensors_in
from tensorlens.tracer.isolation.guard import caller
from tensorlens.tracer.recording.recorder import Recorder

MAX_ASSIGNMENTS = 5_000
_HELD = (torch.Tensor, torch.nn.Module)


def scaler_method(name: str) -> Any:
    """A method of `GradScaler` that is given an optimizer: recorded as a call on the optimizer's parameters."""

    def wrap(recorder: Recorder, original: Any) -> Any:
        @functools.wraps(original)
        def method(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, optimizer, *args, **kwargs)
            if not recorder.paused:
                called = (original, f"GradScaler.{name}", caller(), False, True, ())
                sequence = torch._C._autograd._get_sequence_nr()
                with torch._C.DisableTorchFunction():  # the program's own modes are active
                    held = tensors_in(optimizer)
                    recorder.finish(called, None, held, recorder.accesses(held), sequence)
            return result

        return method

    return wrap


class Assignments:
    """Notes parameters and modules that take the place of others in a module, or that stand in two places."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._homes: dict[int, tuple[Any, tuple[int, str]]] = {}  # id -> (what says that it is alive, where it stands)
        self._count = 0

    def note(self, module: Any, name: str, value: Any, frame: Any) -> None:
        """`value` is about to become `module.name`."""
        before = self._held(module, name)
        if not isinstance(value, _HELD) or before is value or self._count >= MAX_ASSIGNMENTS:
            return
        shared = self._stands_elsewhere(value, (id(module), name))
        if not shared and not isinstance(before, _HELD):
            return
        self._count += 1
        recorder = self._recorder
        with torch._C.DisableTorchFunction():
            old, new = (self._numbers(held) for held in (before, value))
        recorder.rows.append((ASSIGNMENT, recorder.sites.site_of(frame), name, old, new, shared))

    def _held(self, module: Any, name: str) -> Any:
        state = vars(module)
        for table in ("_parameters", "_buffers", "_modules"):
            if name in (state.get(table) or ()):
                return state[table][name]
        return state.get(name)

    def _stands_elsewhere(self, value: Any, place: tuple[int, str]) -> bool:
        """Whether `value` was given to another module, or under another name, before."""
        if isinstance(value, torch.Tensor):
            mark: Any = self._recorder.tensor_ids.find(value)
            alive = mark is not None and self._homes.get(id(value), (None,))[0] == mark
        else:
            known = self._homes.get(id(value))
            alive = known is not None and known[0]() is value
            mark = weakref.ref(value)
        former = self._homes[id(value)][1] if alive else place
        if not alive:
            self._homes[id(value)] = (mark, place)
        return former != place

    def _numbers(self, value: Any) -> tuple[int, ...]:
        return tuple(self._recorder.accesses(tensors_in(value))[::2])


def module_setter(recorder: Recorder, original: Any) -> Any:
    """`Module.__setattr__` and `Module.add_module`."""
    assignments = Assignments(recorder)

    @functools.wraps(original)
    def set_(self: Any, name: Any, value: Any) -> Any:
        if isinstance(value, _HELD) and type(name) is str and not recorder.paused:
            assignments.note(self, name, value, caller())
        return original(self, name, value)

    return set_
