"""Notes where the user's code enters and leaves contexts of PyTorch: inference mode, anomaly detection, saved-tensor
hooks, autocast, levels of forward mode, and the levels of `torch.func` transforms.
"""

from __future__ import annotations

import sys
from types import FrameType

import torch

from tensorlens.journal.rows import NONE, RegionRow
from tensorlens.tracer.frames.call_sites import NOWHERE
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Observing, Patch, existing, observe
from tensorlens.tracer.isolation.torch_features import TRANSFORMS
from tensorlens.tracer.patches.torch_functions import note_mode, switch_site
from tensorlens.tracer.recording.recorder import Recorder

_MODE_FILES = ("anomaly_mode.py", "graph.py", "autocast_mode.py", "forward_ad.py")


def _note(recorder: Recorder, frame: FrameType, kind: str, entering: bool) -> None:
    """Writes a REGION row for a context that the user's own code, not PyTorch's, entered or left."""
    site, _ = switch_site(recorder, frame, _MODE_FILES)
    if site != NONE:
        recorder.rows.write(RegionRow, None, site, kind, entering, None)


def _inference_mode(entering: bool) -> Observing[Recorder]:
    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def switch(frame: FrameType, self: torch.inference_mode, *args: object) -> object:
            result: object = original(self, *args)
            note_mode(recorder, frame, "inference_mode", entering)
            return result

        return switch

    return wrap


@observe
def _set_anomaly_enabled(recorder: Recorder, original: Function) -> Function:
    def set_anomaly_enabled(frame: FrameType, /, mode: bool, *args: object, **kwargs: object) -> None:
        original(mode, *args, **kwargs)
        leaving = not mode or frame.f_code.co_name == "__exit__"
        _note(recorder, frame, "detect_anomaly", not leaving)

    return set_anomaly_enabled


def _context(kind: str, entering: bool) -> Observing[Recorder]:
    """Notes a function that enters or leaves a context, and the exception that it raises.

    A `kind` of "" means the name of the context manager's class.
    """

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        module = original.__module__.removeprefix("torch.") if original.__module__ else ""

        def switch(frame: FrameType, /, *args: object, **kwargs: object) -> object:
            name = kind or type(args[0]).__name__
            try:
                result: object = original(*args, **kwargs)
            except BaseException as error:
                recorder.fail(error, f"{module}.{name}", (), frame)
                raise
            _note(recorder, frame, name, entering)
            return result

        return switch

    return wrap


def _transform_level(fallback: str, entering: bool) -> Observing[Recorder]:
    """Notes that a level of `torch.func` begins or ends, at the user's line, under the transform's name."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def nesting(frame: FrameType, /, *args: object, **kwargs: object) -> object:
            result: object = original(*args, **kwargs)
            site, kind = _transform_called(recorder, frame, fallback)
            if site != NOWHERE:
                recorder.rows.write(RegionRow, None, site, kind, entering, None)
            return result

        return nesting

    return wrap


def _transform_called(recorder: Recorder, start: FrameType, fallback: str) -> tuple[int, str]:
    """Returns the user's line and the innermost public transform that runs: `vmap(grad(f))` opens a level of each."""
    name = ""
    frame: FrameType | None = start
    while frame is not None and not recorder.sites.is_user(frame.f_code.co_filename):
        head = frame.f_code.co_qualname.partition(".")[0]
        if not name and head in TRANSFORMS:
            name = head
        frame = frame.f_back
    return recorder.sites.site_of(frame), f"func.{name or fallback}"


_HOOKS = torch.autograd.graph.saved_tensors_hooks
_LEVELS = sys.modules["torch._functorch.eager_transforms"]
_VMAP = sys.modules["torch._functorch.vmap"]

PATCHES = existing(
    (
        Patch(torch.inference_mode, "__enter__", _inference_mode(True)),
        Patch(torch.inference_mode, "__exit__", _inference_mode(False)),
        Patch(torch, "set_anomaly_enabled", _set_anomaly_enabled),
        Patch(_HOOKS, "__enter__", _context("", True)),
        Patch(_HOOKS, "__exit__", _context("", False)),
        Patch(torch._C._autograd, "_saved_tensors_hooks_disable", _context("disable_saved_tensors_hooks", True)),
        Patch(torch._C._autograd, "_saved_tensors_hooks_enable", _context("disable_saved_tensors_hooks", False)),
        Patch(torch.amp.autocast_mode.autocast, "__enter__", _context("autocast", True)),
        Patch(torch.amp.autocast_mode.autocast, "__exit__", _context("autocast", False)),
        Patch(torch.autograd.forward_ad, "enter_dual_level", _context("dual_level", True)),
        Patch(torch.autograd.forward_ad, "exit_dual_level", _context("dual_level", False)),
        Patch(_LEVELS, "_grad_increment_nesting", _transform_level("grad", True)),
        Patch(_LEVELS, "_grad_decrement_nesting", _transform_level("grad", False)),
        Patch(_LEVELS, "_jvp_increment_nesting", _transform_level("jvp", True)),
        Patch(_LEVELS, "_jvp_decrement_nesting", _transform_level("jvp", False)),
        Patch(_VMAP, "_vmap_increment_nesting", _transform_level("vmap", True)),
        Patch(_VMAP, "_vmap_decrement_nesting", _transform_level("vmap", False)),
    )
)
