"""Notes modules that `copy.copy()` makes of others. Installed in runs with `--training` only."""

from __future__ import annotations

import copy
from types import FrameType

import torch

from tensorlens.records.training_values import ShallowCopy
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.recording.recorder import Recorder

MOST = 2_000  # parameters of one module


@observe
def _set_state(recorder: Recorder, original: Function) -> Function:
    """Wraps the method that gives a new module the attributes of the one that it is a copy of."""

    def set_state(frame: FrameType, self: torch.nn.Module, state: object) -> object:
        result = original(self, state)
        with ErrorGuard(recorder, "a copied module", frame), torch._C.DisableTorchFunction():
            user = _copied_by(frame)
            if user is not None and recorder.sites.is_user(user.f_code.co_filename):
                _note(recorder, self, user)
        return result

    return set_state


def _copied_by(frame: FrameType) -> FrameType | None:
    """Returns the frame that calls `copy.copy()`, if that makes the module: `deepcopy()` copies the parameters, too."""
    caller = frame.f_back
    is_shallow = frame.f_code.co_filename == copy.__file__ and frame.f_locals.get("deep") is False
    if not is_shallow or caller is None or caller.f_code is not copy.copy.__code__:
        return None
    return caller.f_back


def _note(recorder: Recorder, module: torch.nn.Module, frame: FrameType) -> None:
    parameters = list(module.parameters())[:MOST]
    if parameters:
        numbers = tuple(map(recorder.tensor_ids.id_of, parameters))
        recorder.rows.write_fact(ShallowCopy, recorder.sites.site_of(frame), type(module).__name__, numbers)


PATCHES = (Patch(torch.nn.Module, "__setstate__", _set_state),)
