"""Notes in which mode dropout and batch norm run, and which line sets it. Installed in runs with `--training` only."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch
from torch.jit import _recursive as torchscript

from tensorlens.journal.rows import optional
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, existing, observe
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.mode_readers import LAYERS

_FILES = torch.nn.modules.batchnorm, torch.nn.modules.dropout
_SWITCHES = frozenset(("no_grad", "inference_mode"))
_MAX_FRAMES = 8  # between a call of `train` and an override of it
_FORWARDS: dict[Any, Function] = {
    each: vars(each)["forward"]
    for file in _FILES
    for each in vars(file).values()
    if isinstance(each, type) and issubclass(each, LAYERS) and "forward" in vars(each)
}


@observe
def _forward(recorder: Recorder, original: Function) -> Function:
    def forward(frame: FrameType, self: torch.nn.Module, *args: object, **kwargs: object) -> object:
        if recorder.statistics is not None:
            with ErrorGuard(recorder, "a layer", frame), torch._C.DisableTorchFunction():
                given = args[0] if args else kwargs.get("input")
                recorder.statistics.layers.ran(self, given, optional(recorder.sites.site_of(frame)))
        return original(self, *args, **kwargs)

    return forward


@observe
def _train(recorder: Recorder, original: Function) -> Function:
    """Wraps `Module.train`, which `Module.eval` calls too."""

    def train(frame: FrameType, self: torch.nn.Module, mode: bool = True) -> object:
        if recorder.statistics is None:
            return original(self, mode)
        site = optional(recorder.sites.site_of(frame))
        how = _is_in_override(frame, self), _stops_recording(frame)
        with recorder.statistics.layers.switching(self, bool(mode), site, *how):
            return original(self, mode)

    return train


def _is_in_override(frame: FrameType | None, module: torch.nn.Module) -> bool:
    """Returns whether the `train` or `eval` of another module calls that of a module."""
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name in ("train", "eval"):
            owner = frame.f_locals.get("self")
            if isinstance(owner, torch.nn.Module) and owner is not module:
                return True
        frame = frame.f_back
    return False


def _stops_recording(frame: FrameType | None) -> bool:
    """Returns whether gradients are off, or the function that switches the mode also uses `no_grad`: it evaluates."""
    while frame is not None and frame.f_code.co_filename == torch.nn.modules.module.__file__:
        frame = frame.f_back
    if not torch.is_grad_enabled():
        return True
    is_function = frame is not None and frame.f_code.co_name != "<module>"  # a script has decorators, and other uses
    return frame is not None and is_function and not _SWITCHES.isdisjoint(frame.f_code.co_names)


@observe
def _compile(recorder: Recorder, original: Function) -> Function:
    """Puts the layers' own `forward` back while TorchScript compiles a module: it reads the source."""

    def compile_module(frame: FrameType, *args: object, **kwargs: object) -> object:
        patched = {each: vars(each)["forward"] for each in _FORWARDS}
        for each, own in _FORWARDS.items():
            each.forward = own
        try:
            return original(*args, **kwargs)
        finally:
            for each, replacement in patched.items():
                each.forward = replacement

    return compile_module


PATCHES: tuple[Patch[Recorder], ...] = existing(
    (
        Patch(torch.nn.Module, "train", _train),
        Patch(torchscript, "create_script_module", _compile),
        *(Patch(each, "forward", _forward) for each in _FORWARDS),
    )
)
