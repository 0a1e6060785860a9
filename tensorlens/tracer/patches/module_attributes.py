"""Records assignments of parameters and modules in modules, and calls of `GradScaler` on an optimizer."""

from __future__ import annotations

import weakref
from pathlib import Path
from types import FrameType

import torch

from tensorlens.journal.rows import AssignmentRow, optional
from tensorlens.records.observations import FlagOnModule
from tensorlens.tracer.frames.failing_call import tensors_in
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.module_tree import named_parts
from tensorlens.tracer.isolation.patch import Observing, Patch, observe
from tensorlens.tracer.patches.record_call import PatchedCall, record_use
from tensorlens.tracer.recording.recorder import Recorder

MAX_ASSIGNMENTS = 5_000
_KEPT = (torch.Tensor, torch.nn.Module)
_TORCH = str(Path(torch.__file__).parent)


def _scaler_method(name: str) -> Observing[Recorder]:
    """Records a method of `GradScaler` that takes an optimizer, as a call on the optimizer's parameters."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def method(
            frame: FrameType,
            /,
            self: torch.amp.GradScaler,
            optimizer: torch.optim.Optimizer,
            *args: object,
            **kwargs: object,
        ) -> object:
            result: object = original(self, optimizer, *args, **kwargs)
            with torch._C.DisableTorchFunction():  # the program's own modes are active
                tensors = tensors_in(optimizer)
            record_use(recorder, PatchedCall(original, f"GradScaler.{name}", frame), tensors)
            return result

        return method

    return wrap


class Assignments:
    """Notes a parameter or module that replaces another in a module, or that two modules share."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._places = recorder.places  # of parameters and modules: `register_parameter` and assignments have the same
        self._count = 0

    def note(self, module: torch.nn.Module, name: str, value: torch.Tensor | torch.nn.Module, frame: FrameType) -> None:
        """Writes an ASSIGNMENT row when `value` is about to become `module.name`."""
        before = _attribute(module, name)
        if before is value or self._count >= MAX_ASSIGNMENTS:
            return
        shared = self._is_elsewhere(value, (id(module), name))
        if not shared and not isinstance(before, _KEPT):
            return
        self._count += 1
        recorder = self._recorder
        with torch._C.DisableTorchFunction():
            old, new = (self._tensor_ids(kept) for kept in (before, value))
        recorder.rows.write(AssignmentRow, optional(recorder.sites.site_of(frame)), name, old, new, shared)

    def note_flag(self, module: torch.nn.Module, frame: FrameType) -> None:
        """Writes a `FlagOnModule` if `requires_grad` is about to become a plain attribute of a module with parameters.

        A class that has such an attribute itself uses it for something else.
        """
        if hasattr(type(module), "requires_grad") or "requires_grad" in vars(module):
            return
        recorder = self._recorder
        with torch._C.DisableTorchFunction():
            held = [(vars(part).get("_parameters") or {}).values() for _, part in named_parts(module)]
            tensors = [tensor for each in held for tensor in each if tensor is not None and tensor.requires_grad]
            numbers = tuple(map(recorder.tensor_ids.id_of, tensors))
        if numbers:
            recorder.rows.write_fact(FlagOnModule, optional(recorder.sites.site_of(frame)), numbers)

    def _is_elsewhere(self, value: torch.Tensor | torch.nn.Module, place: tuple[int, str]) -> bool:
        """Returns whether `value` was assigned to another module, or under another name, before.

        A mark distinguishes an object from a later one at the same address: a tensor id, or a weak reference.
        """
        known = self._places.get(id(value))
        mark: object
        if isinstance(value, torch.Tensor):
            mark = self._recorder.tensor_ids.find(value)
            is_same = mark is not None and known is not None and known[0] == mark
        else:
            mark = weakref.ref(value)
            is_same = known is not None and isinstance(known[0], weakref.ref) and known[0]() is value
        if known is None or not is_same:
            self._places[id(value)] = (mark, place)
            return False
        return known[1] != place

    def _tensor_ids(self, value: object) -> tuple[int, ...]:
        return tuple(self._recorder.accesses(tensors_in(value))[::2])


def _attribute(module: torch.nn.Module, name: str) -> object:
    state = vars(module)
    for table in ("_parameters", "_buffers", "_modules"):
        if name in (state.get(table) or ()):
            return state[table][name]
    return state.get(name)


@observe
def _setattr(recorder: Recorder, original: Function) -> Function:
    """Notes `Module.__setattr__` of a tensor or a module, and of a flag that only tensors have."""
    assignments = Assignments(recorder)

    def set_(frame: FrameType, self: torch.nn.Module, name: object, value: object) -> object:
        if isinstance(value, _KEPT) and type(name) is str:
            assignments.note(self, name, value, frame)
        elif value is False and name == "requires_grad":
            with ErrorGuard(recorder, "a flag of a module", frame):
                assignments.note_flag(self, frame)
        return original(self, name, value)

    return set_


@observe
def _register(recorder: Recorder, original: Function) -> Function:
    """Notes `Module.register_parameter`, but for calls of PyTorch, as those by an assignment."""
    assignments = Assignments(recorder)

    def register(frame: FrameType, self: torch.nn.Module, *args: object, **kwargs: object) -> object:
        if not frame.f_code.co_filename.startswith(_TORCH):
            name = args[0] if args else kwargs.get("name")
            parameter = args[1] if len(args) > 1 else kwargs.get("param")
            if isinstance(parameter, torch.nn.Parameter) and type(name) is str:
                assignments.note(self, name, parameter, frame)
        return original(self, *args, **kwargs)

    return register


PATCHES = (
    Patch(torch.nn.Module, "__setattr__", _setattr),
    Patch(torch.nn.Module, "register_parameter", _register),
    Patch(torch.amp.GradScaler, "unscale_", _scaler_method("unscale_")),
    Patch(torch.amp.GradScaler, "step", _scaler_method("step")),
)
