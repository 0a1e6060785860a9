"""Looks at the graph of a loss when a backward pass begins, in several ways, each for as many passes as it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.looks_at_graphs import GraphValues
from tensorlens.tracer.training.reduced_losses import ReducedLosses
from tensorlens.tracer.training.weighted_targets import TargetCounts
from tensorlens.tracer.training.zeroed_sequences import InfiniteLosses


class _Look(Protocol):
    @property
    def is_done(self) -> bool: ...
    def begin_pass(self, roots: Sequence[torch.Tensor]) -> None: ...


class LossLooks:
    """The looks of one run that are not done."""

    def __init__(self, recorder: Recorder) -> None:
        self._left: list[_Look] = [
            ReducedLosses(recorder), InfiniteLosses(recorder), TargetCounts(recorder), GraphValues(recorder),
        ]  # fmt: skip

    def begin_pass(self, roots: Sequence[torch.Tensor]) -> None:
        """Looks at a pass."""
        is_any_done = False
        for each in self._left:
            each.begin_pass(roots)
            is_any_done |= each.is_done
        if is_any_done:
            self._left = [each for each in self._left if not each.is_done]
