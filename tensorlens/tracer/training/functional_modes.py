"""Notes how functional batch norm and dropout are called: with which `momentum`, and whether by a layer."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType

import torch

from tensorlens.journal.rows import NONE, optional
from tensorlens.records.training_values import BatchMomentum, DroppedByFunction
from tensorlens.tracer.recording.recorder import Recorder

_MOST = 1_000  # tensors, and lines
_FILES = torch.nn.functional.__file__, torch.overrides.__file__


@dataclass(slots=True)
class _Norm:
    """Counts as in `BatchMomentum`."""

    momentum: float
    site: int | None = None
    updates: int = 0
    uses: int = 0
    is_constant: bool = True


class FunctionalModes:
    """Notes the calls of one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._norms: dict[int, _Norm] = {}  # by the number of the running mean
        self._dropped: dict[int, int] = {}  # runs by the line; 0 if one was in eval mode

    def normalised(self, mean: torch.Tensor, training: bool, momentum: object, frame: FrameType | None) -> None:
        """Notes a call of batch norm that has running statistics."""
        if torch._C._functorch.is_functorch_wrapped_tensor(mean):
            return  # it has no number outside `vmap`
        number = self._recorder.tensor_ids.find(mean)
        norm = None if number is None else self._norms.get(number)
        if not training:
            if norm is not None:
                norm.uses += 1
            return
        if number is None or not isinstance(momentum, int | float):
            return
        if norm is None and len(self._norms) < _MOST:
            norm = self._norms[number] = _Norm(momentum)
        if norm is not None:
            norm.is_constant &= norm.momentum == momentum
            norm.updates += torch.is_grad_enabled()
            if norm.site is None:
                norm.site = optional(self._recorder.sites.site_of(frame))

    def dropped(self, training: bool, frame: FrameType | None) -> None:
        """Notes a call of dropout, if a line of the script makes it."""
        while frame is not None and frame.f_code.co_filename in _FILES:
            frame = frame.f_back
        if frame is None or not self._recorder.sites.is_user(frame.f_code.co_filename):
            return
        site = self._recorder.sites.site_of(frame)
        if site != NONE and (site in self._dropped or len(self._dropped) < _MOST):
            is_training = training and self._dropped.get(site) != 0
            self._dropped[site] = self._dropped.get(site, 0) + 1 if is_training else 0

    def write(self, number: int) -> None:
        """Writes what was noted so far."""
        for mean, norm in self._norms.items():
            if norm.uses and norm.updates:
                counts = norm.updates, norm.uses, norm.is_constant
                self._recorder.rows.write_fact(BatchMomentum, number, mean, norm.site, float(norm.momentum), *counts)
        for site, runs in self._dropped.items():
            if runs:
                self._recorder.rows.write_fact(DroppedByFunction, number, site, runs)
