"""Checks the `backward` of the program's custom Functions when a second run of `--training` has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import cast

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node

from tensorlens.records.reference import FORMULAS
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Patch, observe, patched
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.reference.backward_check import BackwardCheck
from tensorlens.tracer.reference.central_differences import Application
from tensorlens.tracer.reference.differentiated_backward import DifferentiatedBackward
from tensorlens.tracer.reference.gradient_samples import Comparison


@contextmanager
def functions_checked(recorder: Recorder) -> Iterator[None]:
    """Keeps calls of custom Functions while this lasts. To be entered after the recorder has installed its patches."""
    calls = _Calls(recorder)
    try:
        with patched(PATCHES, calls):
            yield
    finally:
        with calls.check.guard:
            calls.check.check()
            calls.differentiated.check()


class _Calls:
    paused = False  # the patch below runs whether the recorder is paused or not

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.check = recorder, BackwardCheck(recorder)
        self.differentiated = DifferentiatedBackward(recorder, self.check)
        self._comparison = Comparison(recorder.rows, FORMULAS)

    def internal_error(self, what: str, error: Exception, frame: FrameType | None = None) -> None:
        self._comparison.internal_error(what, error, frame)


@observe
def _apply(calls: _Calls, original: Function) -> Function:
    """Keeps the arguments of a call, and the gradient that its `backward` gets."""

    def apply(_: FrameType, /, cls: type, *args: object, **kwargs: object) -> object:
        recorder, check = calls.recorder, calls.check
        application: Application | None = None
        if not kwargs and not recorder.paused:
            with check.guard, recorder.quiet(), torch._C.DisableTorchFunction():
                application = check.keep(cls, args)
        result: object = original(cls, *args, **kwargs)
        first = result[0] if isinstance(result, tuple) and result else result
        node = first.grad_fn if isinstance(first, torch.Tensor) else None
        if node is not None and application is not None:
            node.register_prehook(_taking(check, application))
        if node is not None and not kwargs and not recorder.paused:
            with check.guard, recorder.quiet(), torch._C.DisableTorchFunction():
                calls.differentiated.note_call(cls, args, node)
        return result

    return apply


def _taking(check: BackwardCheck, application: Application) -> Callable[[tuple[object, ...]], None]:
    """Makes a hook of a custom Function's node, which runs before its `backward`."""

    def take(gradients: tuple[object, ...]) -> None:
        with check.guard:
            application.take(gradients)

    return take


@observe
def _backward(calls: _Calls, original: Function) -> Function:
    """Notes the gradients that a `backward` returns with a graph, as `create_graph=True` makes them."""

    def apply(_: FrameType, /, self: BackwardCFunction, *args: object) -> object:
        result: object = original(self, *args)
        if torch.is_grad_enabled():
            with calls.check.guard, calls.recorder.quiet(), torch._C.DisableTorchFunction():
                calls.differentiated.note_backward(cast(Node, self), args, result)
        return result

    return apply


PATCHES = (
    Patch(torch.autograd.Function, "apply", _apply),
    Patch(BackwardCFunction, "apply", _backward),
)
