"""Notes what `load_state_dict()` loads, the state dicts of optimizers, and what `functional_call` uses.

Installed in runs with `--training` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType

import torch

from tensorlens.journal.rows import optional
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, existing, observe
from tensorlens.tracer.recording.recorder import Recorder


@observe
def _load(recorder: Recorder, original: Function) -> Function:
    """Wraps the method that `load_state_dict` calls for each part of a module. A strict call loads all, or raises."""

    def load(frame: FrameType, self: torch.nn.Module, *args: object) -> object:
        result = original(self, *args)
        with ErrorGuard(recorder, "a loaded state", frame), torch._C.DisableTorchFunction():
            state, prefix, missing = args[0], args[1], args[4]
            known = isinstance(state, Mapping) and isinstance(prefix, str) and isinstance(missing, list)
            if known and recorder.statistics is not None:
                is_whole = prefix == "" and _is_strict(frame)
                site = optional(recorder.sites.site_of(frame))
                if is_whole:
                    recorder.statistics.loads.products.look(self, state, site)
                else:
                    recorder.statistics.loads.note(self, state, prefix, (missing, site))
        return result

    return load


def _is_strict(frame: FrameType) -> bool:
    """Returns whether `load_state_dict` was called to load everything. Its inner function runs in `frame`."""
    return frame.f_back is None or frame.f_back.f_locals.get("strict") is not False


@observe
def _call(recorder: Recorder, original: Function) -> Function:
    """Wraps the function that runs a module with tensors of the script. A strict call uses all, or raises."""

    def call(frame: FrameType, module: torch.nn.Module, given: object, *args: object, **options: object) -> object:
        result = original(module, given, *args, **options)
        with ErrorGuard(recorder, "a functional call", frame), torch._C.DisableTorchFunction():
            if isinstance(given, Mapping) and recorder.statistics is not None and not options.get("strict"):
                recorder.statistics.loads.note_call(module, given, optional(recorder.sites.site_of(frame)))
        return result

    return call


@observe
def _make_state(recorder: Recorder, original: Function) -> Function:
    """Wraps the method that makes the state dict of an optimizer, whose tensors are no copies."""

    def make(frame: FrameType, self: torch.optim.Optimizer, *args: object, **options: object) -> object:
        result = original(self, *args, **options)
        if recorder.statistics is not None:
            with ErrorGuard(recorder, "a kept state", frame), torch._C.DisableTorchFunction(), recorder.quiet():
                recorder.statistics.shared_states.made(self, result)
        return result

    return make


@observe
def _load_optimizer(recorder: Recorder, original: Function) -> Function:
    """Wraps the method that also replaces the options of an optimizer, such as its learning rate."""

    def load(frame: FrameType, self: torch.optim.Optimizer, *args: object, **options: object) -> object:
        if recorder.statistics is not None:
            with ErrorGuard(recorder, "a loaded state", frame), torch._C.DisableTorchFunction(), recorder.quiet():
                given = args[0] if args else options.get("state_dict")
                recorder.statistics.shared_states.loading(self, given, optional(recorder.sites.site_of(frame)))
        result = original(self, *args, **options)
        with ErrorGuard(recorder, "a loaded state", frame), torch._C.DisableTorchFunction():
            if recorder.statistics is not None:
                site = optional(recorder.sites.site_of(frame))
                recorder.statistics.options_loaded(self, site)
                recorder.statistics.loads.note_optimizer(self, site)
        return result

    return load


PATCHES = (
    Patch(torch.optim.Optimizer, "load_state_dict", _load_optimizer),
    Patch(torch.optim.Optimizer, "state_dict", _make_state),
    Patch(torch.nn.Module, "_load_from_state_dict", _load),
    *existing((Patch(torch.nn.utils.stateless, "_functional_call", _call),)),
)
