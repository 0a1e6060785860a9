"""Records what a step of PyTorch's own optimizers, and `zero_grad`, does: one call for each parameter that changes.

A step makes some ten torch calls per parameter. Afterwards, parameters have new versions, and after `zero_grad`
gradients are gone. The mode is off the stack while they run, so that training costs less than under an empty mode. Each
parameter that changed is recorded as one call, named `SGD.step`.

A step that may do more is recorded call by call: an optimizer of the program's own, hooks and closures, fused
kernels, differentiable steps.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType

import torch
from torch.autograd.profiler import record_function
from torch.compiler import is_compiling

from tensorlens.journal.rows import NONE, NOTHING, WRITTEN, CallTemplateRow
from tensorlens.tracer.frames.failing_call import failing_call
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Observing, Patch, observe
from tensorlens.tracer.patches.optimizer_state import FoundParameter
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder, current_mode, version_of
from tensorlens.tracer.recording.tensor_ids import PLAIN

_next_sequence = torch._C._autograd._get_sequence_nr
_STEP = "Optimizer.step#"
_CLEAR = ops.name_of(ops.setter("grad"))
NO_GRAD = 1
_OPTIM = sys.modules[torch.optim.Optimizer.__module__]

_Before = tuple[torch.Tensor, int, tuple[int, ...]]
"""A parameter before a step, its version counter, and (id, version) of it and of its gradient, flat."""


class OptimizerSteps:
    """The optimizer steps that are running, at most one per thread."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._finders: dict[tuple[str, int, int], Callable[[int, bool], int]] = {}
        self._running: dict[int, tuple[str, FrameType, int, list[_Before]]] = {}  # by thread

    def begin(self, optimizer: torch.optim.Optimizer, found: list[FoundParameter], frame: FrameType, site: int) -> None:
        """Takes the mode off the stack until the step ends, unless that could miss something.

        `site`: that of the step; `NONE` if it is not read yet.
        """
        recorder = self._recorder
        if not recorder.observes() or not _is_plain(optimizer):
            return
        in_c = recorder.tensor_ids.in_c
        before = _before(found) if in_c is None else in_c.before(found)
        if before is None:
            return
        name = f"{type(optimizer).__name__}.step"
        self._running[_thread.get_ident()] = (name, frame, site, before)
        torch._C._pop_torch_function_stack()

    def end(self, error: BaseException | None) -> None:
        """Puts the mode back when a step of this thread ends, and records what the step changed."""
        running = self._running.pop(_thread.get_ident(), None)
        if running is None:
            return
        try:
            with torch._C.DisableTorchFunction():
                self._record_step(*running, error)
        finally:
            if not self._recorder.observes():  # after Ctrl-C the mode may be on the stack still
                torch._C._push_on_torch_function_stack(self._recorder.mode)

    def _record_step(
        self, op: str, frame: FrameType, site: int, parameters: list[_Before], error: BaseException | None
    ) -> None:
        recorder = self._recorder
        if site == NONE:
            site = recorder.sites.site_or_outside(frame)
        template_of = self._template_finder((op, site, NO_GRAD), WRITTEN)
        if recorder.tensor_ids.in_c is not None:
            recorder.tensor_ids.in_c.stepped(parameters, template_of)
        else:
            self._write_stepped(parameters, template_of)
        if error is not None:
            name, tensors = failing_call(recorder.sites, error.__traceback__)
            recorder.fail(error, name or op, recorder.accesses(tensors), recorder.sites.user_frame(frame))

    def _write_stepped(self, parameters: list[_Before], template_of: Callable[[int, bool], int]) -> None:
        recorded: set[int] = set()  # version counters
        sequence = _next_sequence()
        for parameter, counter, inputs in parameters:
            version = parameter._version
            if version != inputs[1] and counter not in recorded:
                recorded.add(counter)
                template = template_of(len(inputs) // 2, parameter.requires_grad)
                self._recorder.rows.write_call((template, *inputs, inputs[0], NONE, version, sequence))

    def is_any_running(self) -> bool:
        """Returns whether a step is running in some thread that waits for the mode to be put back."""
        return bool(self._running)

    def dropped(self, leaves: list[torch.Tensor], frame: FrameType) -> None:
        """Records which of the leaves that had gradients have none any more."""
        recorder = self._recorder
        template_of = self._template_finder((_CLEAR, recorder.sites.site_or_outside(frame), current_mode()), NOTHING)
        if recorder.tensor_ids.in_c is not None:
            recorder.tensor_ids.in_c.dropped(leaves, template_of)
            return
        for leaf in leaves:
            if leaf.grad is None:
                number, version = recorder.tensor_ids.id_of(leaf), version_of(leaf)
                template = template_of(1, leaf.requires_grad)
                recorder.rows.write_call((template, number, version, number, NONE, version, _next_sequence()))

    def _template_finder(self, called: tuple[str, int, int], result: int) -> Callable[[int, bool], int]:
        """Returns a function that finds a call template by the number of inputs and whether the leaf requires grad.

        `called`: the op, the site and the mode. `result`: WRITTEN or NOTHING.
        """
        known = self._finders.get(called)
        if known is not None:
            return known
        templates: dict[tuple[int, bool], int] = {}

        def template_of(inputs: int, requires_grad: bool) -> int:
            number = templates.get((inputs, requires_grad))
            if number is None:
                number = next(self._recorder.template_ids)
                op, site, mode = called
                call = ((), "", "", 0, requires_grad, None, 0, 0, mode, inputs, result)
                self._recorder.rows.write(CallTemplateRow, number, op, site, *call)
                templates[inputs, requires_grad] = number
            return number

        return self._finders.setdefault(called, template_of)


def _before(parameters: list[FoundParameter]) -> list[_Before] | None:
    """Returns what is kept of the parameters until the step ends; None if it must be recorded call by call."""
    before: list[_Before] = []
    for parameter, number, counter, gradient, gradient_number, gradient_version in parameters:
        if type(parameter) not in PLAIN or not parameter.is_leaf or parameter.is_inference():
            return None
        access = (number, parameter._version)
        if gradient is None or gradient_number is None:
            before.append((parameter, counter, access))
        elif type(gradient) in PLAIN:
            before.append((parameter, counter, (*access, gradient_number, gradient_version)))
        else:
            return None
    return before


def _is_plain(optimizer: torch.optim.Optimizer) -> bool:
    """Returns whether a step changes only parameters and the optimizer's own state, and runs no code of the program."""
    for group in optimizer.param_groups:
        if group.get("fused") or group.get("differentiable"):
            return False
    return (
        f"{type(optimizer).__module__}.".startswith("torch.optim.")
        and not optimizer._optimizer_step_pre_hooks
        and not optimizer._optimizer_step_post_hooks
        and len(_OPTIM._global_optimizer_pre_hooks) == len(_OPTIM._global_optimizer_post_hooks) == 1  # the lens's own
    )


def _enter(recorder: Recorder, original: Function) -> Function:
    """Notes the optimizer that begins a step. PyTorch announces it to the profiler: "Optimizer.step#SGD.step".

    It is no `observe` patch, since nothing here can fail. PyTorch enters such a block twice in each training step.
    """

    def __enter__(self: record_function) -> object:
        if is_compiling() or recorder.is_paused or (recorder.quiet_threads and recorder.paused):
            return original(self)
        result = recorder.below(original, self) if recorder.observes() else original(self)
        name = self.name
        if type(name) is str and name.startswith(_STEP):
            recorder.within = name.removeprefix(_STEP)
        return result

    return __enter__


def _exit(recorder: Recorder, original: Function) -> Function:
    """Ends a step that was begun, even if the recorder has been paused since: the mode must come back.

    Between the recorded steps of a sampled run, none has been begun.
    """

    def __exit__(
        self: record_function,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> object:
        if recorder.off or is_compiling():
            return original(self, kind, error, traceback)
        name = self.name
        if type(name) is str and name.startswith(_STEP):
            try:
                _end_step(recorder, error)
            except Exception as internal:
                recorder.internal_error("`record_function.__exit__`", internal)
        if recorder.observes():
            return recorder.below(original, self, kind, error, traceback)
        return original(self, kind, error, traceback)

    return __exit__


def _end_step(recorder: Recorder, error: BaseException | None) -> None:
    try:
        recorder.steps.end(error)
    finally:
        recorder.within = ""
        if recorder.sampling is not None:
            recorder.sampling.switch()


def _zero_grad(parameters_of: Callable[..., Iterable[torch.Tensor]]) -> Observing[Recorder]:
    """Records `zero_grad` of an optimizer or module as one call for each gradient that is dropped."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def zero_grad(frame: FrameType, /, self: object, *args: object, **kwargs: object) -> None:
            dropping = args[0] if args else kwargs.get("set_to_none", True)
            if not dropping or not recorder.observes():
                original(self, *args, **kwargs)
                return
            with torch._C.DisableTorchFunction():
                in_c, every = recorder.tensor_ids.in_c, parameters_of(self)
                leaves = (
                    [p for p in every if p.is_leaf and p.grad is not None]
                    if in_c is None
                    else in_c.with_gradient(every)
                )
            recorder.below(original, self, *args, **kwargs)
            with torch._C.DisableTorchFunction():
                if in_c is None or in_c.new(leaves):
                    recorder.meet(leaves)
                recorder.steps.dropped(leaves, frame)

        return zero_grad

    return wrap


def _parameters_of_optimizer(optimizer: torch.optim.Optimizer) -> Iterable[torch.Tensor]:
    groups = optimizer.param_groups
    return groups[0]["params"] if len(groups) == 1 else [parameter for group in groups for parameter in group["params"]]


PATCHES = (
    Patch(record_function, "__enter__", _enter),
    Patch(record_function, "__exit__", _exit),
    Patch(torch.optim.Optimizer, "zero_grad", _zero_grad(_parameters_of_optimizer)),
    Patch(torch.nn.Module, "zero_grad", _zero_grad(torch.nn.Module.parameters)),
)
