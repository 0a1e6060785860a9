"""Notes learning-rate schedulers and their steps. Installed in runs with `--training` only."""

from __future__ import annotations

import inspect
from types import FrameType

import torch
from torch.optim import lr_scheduler

from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.schedules import rates_of


@observe
def _init(recorder: Recorder, original: Function) -> Function:
    """Notes a scheduler when the outermost of its classes has made it."""

    def __init__(frame: FrameType, /, self: object, *args: object, **kwargs: object) -> None:
        if recorder.statistics is None:
            original(self, *args, **kwargs)
            return
        schedules = recorder.statistics.schedules
        with schedules.making():
            original(self, *args, **kwargs)
        with ErrorGuard(recorder, "a scheduler", frame), torch._C.DisableTorchFunction():
            schedules.made(self, frame)

    return __init__


@observe
def _step(recorder: Recorder, original: Function) -> Function:
    def step(frame: FrameType, /, self: object, *args: object, **kwargs: object) -> object:
        before: tuple[float, ...] = ()
        if recorder.statistics is not None:
            with ErrorGuard(recorder, "a scheduler", frame), torch._C.DisableTorchFunction():
                before = rates_of(self)
        result = original(self, *args, **kwargs)
        if recorder.statistics is not None:
            with ErrorGuard(recorder, "a scheduler", frame), torch._C.DisableTorchFunction():
                metric = args[0] if args else kwargs.get("metrics")
                recorder.statistics.schedules.stepped(self, frame, before, metric)
        return result

    return step


_FOUND = [each for each in vars(lr_scheduler).values() if inspect.isclass(each)]
_CLASSES = tuple(dict.fromkeys(each for each in _FOUND if issubclass(each, lr_scheduler.LRScheduler)))
PATCHES = (
    *(Patch(each, "__init__", _init) for each in _CLASSES if "__init__" in vars(each)),
    *(Patch(each, "step", _step) for each in _CLASSES if "step" in vars(each)),
)
