"""What torch's own optimizers do to parameters, told from before and after.

A step or `zero_grad` makes some ten torch calls a parameter, of which nothing is left but parameters at a new version
and gradients that are gone. The mode is off the stack while they run, so that training costs less than under an empty
mode, and each parameter that changed is told by one call, named `SGD.step`. Whatever may do more than that is recorded
call by call: an optimizer of the program's own, hooks and closures, fused kernels, steps that are differentiated.
"""

from __future__ import annotations

import _thread
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.profiler import record_function

from tensorlens.journal.rows import NONE, NOTHING, PLAN, WRITTEN
from tensorlens.tracer.frames.failing_call import failing_call
from tensorlens.tracer.isolation.guard import caller
from tensorlens.tracer.patches.optimizer_state import Found
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder, current_mode, version_of
from tensorlens.tracer.recording.tensor_ids import PLAIN

Wrap = Callable[[Recorder, Any], Any]
_next_sequence = torch._C._autograd._get_sequence_nr
_STEP = "Optimizer.step#"
_CLEAR = ops.name_of(ops.setter("grad"))
NO_GRAD = 1
_optim: Any = sys.modules[torch.optim.Optimizer.__module__]


_Held = tuple[torch.Tensor, int, tuple[int, ...]]
"""A parameter before a step, its counter, and (id, version) of it and of its gradient, flat."""


class OptimizerSteps:
    """The steps that run just now, one a thread at the most."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._plans: dict[Any, dict[tuple[int, bool], int]] = {}
        self._running: dict[int, tuple[str, Any, list[_Held]]] = {}

    def begin(self, optimizer: Any, found: list[Found], frame: Any) -> None:
        """Take the mode off the stack until the step is over, if nothing can be missed by it."""
        if not _on_top(self._recorder) or not _is_plain(optimizer):
            return
        held: list[_Held] = []
        with torch._C.DisableTorchFunction():
            for parameter, number, counter, gradient, known, version in found:
                if type(parameter) not in PLAIN or not parameter.is_leaf or parameter.is_inference():
                    return
                if gradient is None or known is None:
                    held.append((parameter, counter, (number, parameter._version)))
                elif type(gradient) in PLAIN:
                    held.append((parameter, counter, (number, parameter._version, known, version)))
                else:
                    return
        name = f"{type(optimizer).__name__}.step"
        self._running[_thread.get_ident()] = (name, self._recorder.sites.user_frame(frame), held)
        torch._C._pop_torch_function_stack()

    def end(self, error: BaseException | None) -> None:
        """A step of this thread's is over: the mode comes back, and what changed is written down."""
        running = self._running.pop(_thread.get_ident(), None)
        if running is None:
            return
        try:
            with torch._C.DisableTorchFunction():
                self._tell_step(*running, error)
        finally:
            if not _on_top(self._recorder):  # Ctrl-C may have come before it was taken off
                torch._C._push_on_torch_function_stack(self._recorder)

    def _tell_step(self, op: str, frame: Any, held: list[_Held], error: BaseException | None) -> None:
        recorder = self._recorder
        plan_of = self._plans_of((op, recorder.sites.site_or_outside(frame), NO_GRAD), WRITTEN)
        told: set[int] = set()
        sequence = _next_sequence()
        for parameter, counter, inputs in held:
            version = parameter._version
            if version != inputs[1] and counter not in told:
                told.add(counter)
                plan = plan_of(len(inputs) // 2, parameter.requires_grad)
                recorder.rows.extend((plan, *inputs, inputs[0], NONE, version, sequence))
        if error is not None:
            name, tensors = failing_call(recorder.sites, error.__traceback__)
            recorder.fail(error, name or op, recorder.accesses(tensors), frame)

    def dropped(self, held: list[torch.Tensor], frame: Any) -> None:
        """Write down which of the leaves `held`, which had gradients, have none any more."""
        recorder = self._recorder
        plan_of = self._plans_of((_CLEAR, recorder.sites.site_or_outside(frame), current_mode()), NOTHING)
        for leaf in held:
            if leaf.grad is None:
                number, version = recorder.tensor_ids.id_of(leaf), version_of(leaf)
                plan = plan_of(1, leaf.requires_grad)
                recorder.rows.extend((plan, number, version, number, NONE, version, _next_sequence()))

    def _plans_of(self, called: tuple[str, int, int], result: int) -> Callable[[int, bool], int]:
        """The plans of calls of one op at one site in one mode, by the number of inputs and whether the leaf requires
        grad; `result` is WRITTEN or NOTHING."""
        plans = self._plans.setdefault((called, result), {})

        def plan_of(inputs: int, requires_grad: bool) -> int:
            number = plans.get((inputs, requires_grad))
            if number is None:
                number = next(self._recorder.template_ids)
                op, site, mode = called
                plan = (op, site, (), "", "", 0, requires_grad, None, 0, 0, mode, inputs, result)
                self._recorder.rows.append((PLAN, number, *plan))
                plans[inputs, requires_grad] = number
            return number

        return plan_of


def _on_top(recorder: Recorder) -> bool:
    return not recorder.paused and not recorder.slow_path_reasons and recorder.is_on_top()


def _is_plain(optimizer: Any) -> bool:
    """Whether a step of this optimizer changes parameters and its own state, and runs no code of the program's."""
    return (
        f"{type(optimizer).__module__}.".startswith("torch.optim.")
        and not optimizer._optimizer_step_pre_hooks
        and not optimizer._optimizer_step_post_hooks
        and len(_optim._global_optimizer_pre_hooks) == len(_optim._global_optimizer_post_hooks) == 1  # ours
        and not any(group.get("fused") or group.get("differentiable") for group in optimizer.param_groups)
    )


@contextmanager
def _off(recorder: Recorder) -> Iterator[None]:
    """The mode off the stack, where it is on top."""
    if not _on_top(recorder):
        yield
        return
    torch._C._pop_torch_function_stack()
    try:
        yield
    finally:
        torch._C._push_on_torch_function_stack(recorder)


def _enter(recorder: Recorder, original: Any) -> Any:
    """Optimizers announce `step()` to the profiler: "Optimizer.step#SGD.step"."""

    def __enter__(self: Any) -> Any:
        with _off(recorder):
            result = original(self)
        if type(self.name) is str and self.name.startswith(_STEP) and not recorder.paused:
            recorder.within = self.name.removeprefix(_STEP)
        return result

    return __enter__


def _leave(recorder: Recorder, original: Any) -> Any:
    def __exit__(self: Any, kind: Any, error: Any, traceback: Any) -> None:
        if type(self.name) is str and self.name.startswith(_STEP):
            try:
                recorder.steps.end(error)
            finally:
                recorder.within = ""
        with _off(recorder):
            original(self, kind, error, traceback)

    return __exit__


def _zero_grad(parameters_of: Callable[[Any], Iterable[torch.Tensor]]) -> Wrap:
    """`zero_grad` of optimizers and modules: one call for each gradient that is dropped."""

    def wrap(recorder: Recorder, original: Any) -> Any:
        @functools.wraps(original)
        def zero_grad(self: Any, *args: Any, **kwargs: Any) -> None:
            dropping = args[0] if args else kwargs.get("set_to_none", True)
            if not dropping or not _on_top(recorder):
                original(self, *args, **kwargs)
                return
            with _off(recorder):
                with torch._C.DisableTorchFunction():
                    held = [p for p in parameters_of(self) if p.is_leaf and p.grad is not None]
                original(self, *args, **kwargs)
                with torch._C.DisableTorchFunction():
                    recorder.steps.dropped(held, caller())

        return zero_grad

    return wrap


def _of_optimizer(optimizer: Any) -> Iterable[torch.Tensor]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


PATCHES: tuple[tuple[Any, str, Wrap], ...] = (
    (record_function, "__enter__", _enter),
    (record_function, "__exit__", _leave),
    (torch.optim.Optimizer, "zero_grad", _zero_grad(_of_optimizer)),
    (torch.nn.Module, "zero_grad", _zero_grad(torch.nn.Module.parameters)),
)
