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

from tensorlens.journal.rows import NONE, NOTHING, WRITTEN, CallTemplateRow
from tensorlens.tracer.frames.failing_call import failing_call
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Observing, Patch, observe, observe_always
from tensorlens.tracer.patches.optimizer_state import SteppedParameter
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
        self._templates: dict[tuple[tuple[str, int, int], int], dict[tuple[int, bool], int]] = {}
        self._running: dict[int, tuple[str, FrameType | None, list[_Before]]] = {}  # by thread

    def begin(self, optimizer: torch.optim.Optimizer, parameters: list[SteppedParameter], frame: FrameType) -> None:
        """Takes the mode off the stack until the step ends, unless that could miss something."""
        if not _is_observing(self._recorder) or not _is_plain(optimizer):
            return
        before: list[_Before] = []
        with torch._C.DisableTorchFunction():
            for parameter, number, counter, gradient, gradient_number, gradient_version in parameters:
                if type(parameter) not in PLAIN or not parameter.is_leaf or parameter.is_inference():
                    return
                access = (number, parameter._version)
                if gradient is None or gradient_number is None:
                    before.append((parameter, counter, access))
                elif type(gradient) in PLAIN:
                    before.append((parameter, counter, (*access, gradient_number, gradient_version)))
                else:
                    return
        name = f"{type(optimizer).__name__}.step"
        self._running[_thread.get_ident()] = (name, self._recorder.sites.user_frame(frame), before)
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
            if not _is_observing(self._recorder):  # after Ctrl-C the mode may be on the stack still
                torch._C._push_on_torch_function_stack(self._recorder.mode)

    def _record_step(
        self, op: str, frame: FrameType | None, parameters: list[_Before], error: BaseException | None
    ) -> None:
        recorder = self._recorder
        template_of = self._template_finder((op, recorder.sites.site_or_outside(frame), NO_GRAD), WRITTEN)
        recorded: set[int] = set()  # version counters
        sequence = _next_sequence()
        for parameter, counter, inputs in parameters:
            version = parameter._version
            if version != inputs[1] and counter not in recorded:
                recorded.add(counter)
                template = template_of(len(inputs) // 2, parameter.requires_grad)
                recorder.rows.write_call((template, *inputs, inputs[0], NONE, version, sequence))
        if error is not None:
            name, tensors = failing_call(recorder.sites, error.__traceback__)
            recorder.fail(error, name or op, recorder.accesses(tensors), frame)

    def is_any_running(self) -> bool:
        """Returns whether a step is running in some thread that waits for the mode to be put back."""
        return bool(self._running)

    def dropped(self, leaves: list[torch.Tensor], frame: FrameType) -> None:
        """Records which of the leaves that had gradients have none any more."""
        recorder = self._recorder
        template_of = self._template_finder((_CLEAR, recorder.sites.site_or_outside(frame), current_mode()), NOTHING)
        for leaf in leaves:
            if leaf.grad is None:
                number, version = recorder.tensor_ids.id_of(leaf), version_of(leaf)
                template = template_of(1, leaf.requires_grad)
                recorder.rows.write_call((template, number, version, number, NONE, version, _next_sequence()))

    def _template_finder(self, called: tuple[str, int, int], result: int) -> Callable[[int, bool], int]:
        """Returns a function that finds a call template by the number of inputs and whether the leaf requires grad.

        `called`: the op, the site and the mode. `result`: WRITTEN or NOTHING.
        """
        templates = self._templates.setdefault((called, result), {})

        def template_of(inputs: int, requires_grad: bool) -> int:
            number = templates.get((inputs, requires_grad))
            if number is None:
                number = next(self._recorder.template_ids)
                op, site, mode = called
                call = ((), "", "", 0, requires_grad, None, 0, 0, mode, inputs, result)
                self._recorder.rows.write(CallTemplateRow, number, op, site, *call)
                templates[inputs, requires_grad] = number
            return number

        return template_of


def _is_observing(recorder: Recorder) -> bool:
    """Returns whether the recorder sees the next call and records it on its fast path."""
    return not recorder.paused and not recorder.slow_path_reasons and recorder.is_on_top()


def _is_plain(optimizer: torch.optim.Optimizer) -> bool:
    """Returns whether a step changes only parameters and the optimizer's own state, and runs no code of the program."""
    return (
        f"{type(optimizer).__module__}.".startswith("torch.optim.")
        and not optimizer._optimizer_step_pre_hooks
        and not optimizer._optimizer_step_post_hooks
        and len(_OPTIM._global_optimizer_pre_hooks) == len(_OPTIM._global_optimizer_post_hooks) == 1  # the lens's own
        and not any(group.get("fused") or group.get("differentiable") for group in optimizer.param_groups)
    )


class _ModeOff:
    """Takes the mode off the stack in a `with` block if it records now. Unlike `Recorder.aside`, patches go on
    recording. It is no generator, which would take four times as long."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder if _is_observing(recorder) else None

    def __enter__(self) -> None:
        if self._recorder is not None:
            torch._C._pop_torch_function_stack()

    def __exit__(self, *_: object) -> None:
        if self._recorder is not None:
            torch._C._push_on_torch_function_stack(self._recorder.mode)


@observe
def _enter(recorder: Recorder, original: Function) -> Function:
    """Notes the optimizer that begins a step. PyTorch announces it to the profiler: "Optimizer.step#SGD.step"."""

    def __enter__(_: FrameType, self: record_function) -> object:
        with _ModeOff(recorder):
            result: object = original(self)
        if type(self.name) is str and self.name.startswith(_STEP):
            recorder.within = self.name.removeprefix(_STEP)
        return result

    return __enter__


def _exit(recorder: Recorder, original: Function) -> Function:
    """Ends a step that was begun. Between the recorded steps of a sampled run, none has been."""
    ending = _ending(recorder, original)

    def __exit__(*args: object) -> object:
        return original(*args) if recorder.off else ending(*args)

    return ending if recorder.sampling is None else __exit__


@observe_always
def _ending(recorder: Recorder, original: Function) -> Function:
    """Ends a step that was begun, even if the recorder has been paused since: the mode must come back."""

    def __exit__(
        _: FrameType,
        self: record_function,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if type(self.name) is str and self.name.startswith(_STEP):
            try:
                recorder.steps.end(error)
            finally:
                recorder.within = ""
                if recorder.sampling is not None:
                    recorder.sampling.switch()
        with _ModeOff(recorder):
            original(self, kind, error, traceback)

    return __exit__


def _zero_grad(parameters_of: Callable[..., Iterable[torch.Tensor]]) -> Observing[Recorder]:
    """Records `zero_grad` of an optimizer or module as one call for each gradient that is dropped."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def zero_grad(frame: FrameType, /, self: object, *args: object, **kwargs: object) -> None:
            dropping = args[0] if args else kwargs.get("set_to_none", True)
            if not dropping or not _is_observing(recorder):
                original(self, *args, **kwargs)
                return
            with _ModeOff(recorder):
                with torch._C.DisableTorchFunction():
                    leaves = [p for p in parameters_of(self) if p.is_leaf and p.grad is not None]
                original(self, *args, **kwargs)
                with torch._C.DisableTorchFunction():
                    recorder.steps.dropped(leaves, frame)

        return zero_grad

    return wrap


def _parameters_of_optimizer(optimizer: torch.optim.Optimizer) -> Iterable[torch.Tensor]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


PATCHES = (
    Patch(record_function, "__enter__", _enter),
    Patch(record_function, "__exit__", _exit),
    Patch(torch.optim.Optimizer, "zero_grad", _zero_grad(_parameters_of_optimizer)),
    Patch(torch.nn.Module, "zero_grad", _zero_grad(torch.nn.Module.parameters)),
)
