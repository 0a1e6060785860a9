"""Records what `DistributedDataParallel` does with a module: which parameters it averages, which passes run through it,
and numbers by which the replicas of all ranks can be compared."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import torch
from torch.nn.parallel import DistributedDataParallel

from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Observing, Patch, existing, observe
from tensorlens.tracer.patches.wrapped_replicas import Replicas
from tensorlens.tracer.recording.recorder import Recorder


def _init(replicas: Replicas) -> Observing[Recorder]:
    """Notes the module that is wrapped, before the ranks compare theirs, and its hooks once it is wrapped."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def __init__(frame: FrameType, /, self: DistributedDataParallel, *args: object, **kwargs: object) -> None:
            wrapper = None
            with ErrorGuard(recorder, "a wrapped module", frame), suppress(TypeError):  # PyTorch rejects such arguments
                given = inspect.signature(original).bind(self, *args, **kwargs).arguments
                wrapper = replicas.wrapping(self, given, frame)
            original(self, *args, **kwargs)
            with ErrorGuard(recorder, "a wrapped module", frame):
                if wrapper is not None:
                    replicas.has_wrapped(wrapper)

        return __init__

    return wrap


def _before_forward(replicas: Replicas) -> Observing[Recorder]:
    """Notes the inputs of a forward pass through the wrapper that a backward pass may follow."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def _pre_forward(frame: FrameType, /, self: DistributedDataParallel, *args: object, **kwargs: object) -> object:
            with ErrorGuard(recorder, "the inputs of a wrapper", frame):
                if torch.is_grad_enabled() and self.training:
                    replicas.inputs(self, (*args, *kwargs.values()), frame)
            return original(self, *args, **kwargs)

        return _pre_forward

    return wrap


def _after_forward(replicas: Replicas) -> Observing[Recorder]:
    """Notes a forward pass through the wrapper, and whether the next backward pass averages gradients."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def _post_forward(frame: FrameType, /, self: DistributedDataParallel, output: object) -> object:
            result: object = original(self, output)
            with ErrorGuard(recorder, "a forward pass of a wrapper", frame):
                if torch.is_grad_enabled():
                    replicas.passed(self, bool(self.require_backward_grad_sync), frame)
            return result

        return _post_forward

    return wrap


def _broadcast(replicas: Replicas) -> Observing[Recorder]:
    """Notes the buffers that a forward pass overwrites with those of rank 0."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def _sync_buffers(frame: FrameType, /, self: DistributedDataParallel) -> None:
            before: dict[str, tuple[int, int]] = {}
            with ErrorGuard(recorder, "the buffers of a wrapper", frame):
                before = replicas.buffers_of(self)
            original(self)
            with ErrorGuard(recorder, "the buffers of a wrapper", frame):
                replicas.broadcast(self, before, frame)

        return _sync_buffers

    return wrap


def _option(replicas: Replicas, option: str) -> Observing[Recorder]:
    """Notes that the program decides itself what is done with gradients."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def register(frame: FrameType, /, self: DistributedDataParallel, *args: object, **kwargs: object) -> object:
            with ErrorGuard(recorder, "a hook of a wrapper", frame):
                replicas.option(self, option)
            return original(self, *args, **kwargs)

        return register

    return wrap


def _engine(replicas: Replicas) -> Observing[Recorder]:
    """Notes the backward passes that change gradients of wrapped parameters."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def _engine_run_backward(frame: FrameType, /, *args: object, **kwargs: object) -> object:
            with ErrorGuard(recorder, "a pass of a wrapper", frame):
                replicas.pass_begins()
            try:
                return original(*args, **kwargs)
            finally:
                with ErrorGuard(recorder, "a pass of a wrapper", frame):
                    replicas.pass_ends(frame)

        return _engine_run_backward

    return wrap


def patches(replicas: Replicas) -> tuple[tuple[Patch[Recorder], ...], tuple[Patch[Recorder], ...]]:
    """Returns the patches for a rank of a distributed run: those to install first, and the others."""
    wraps: dict[str, Callable[[Recorder, Function], object]] = {
        "__init__": _init(replicas),
        "_pre_forward": _before_forward(replicas),
        "_post_forward": _after_forward(replicas),
        "_sync_buffers": _broadcast(replicas),
        "register_comm_hook": _option(replicas, "comm_hook"),
        "_register_builtin_comm_hook": _option(replicas, "comm_hook"),
        "_register_buffer_comm_hook": _option(replicas, "buffer_hook"),
        "_register_fused_optim": _option(replicas, "fused_optimizer"),
    }
    of_wrapper = existing(tuple(Patch(DistributedDataParallel, name, wrap) for name, wrap in wraps.items()))
    return (Patch(torch.autograd, "_engine_run_backward", _engine(replicas)),), of_wrapper
