"""Counts the places that an assignment to items of a tensor names more than once: one value each stays there."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from tensorlens.records.training_values import RepeatedIndices
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import count_nonzero, not_equal, numel, reshape, to
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.rare_looks import RareLooks

_MOST_INDICES = 1 << 16
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8)


class WrittenIndices:
    """Looks at the indices of these assignments: the first times that a line runs, the 8th time, the 16th and so on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._looks = RareLooks()

    def look(self, index: object, frame: FrameType | None) -> None:
        """Writes a fact if an index of the assignment that begins is repeated."""
        parts = index if isinstance(index, tuple | list) else (index,)
        if frame is None or not any(isinstance(part, torch.Tensor) for part in parts):
            return
        if not self._looks.is_due(frame):
            return
        with self._recorder.quiet():
            counts = _counts([part for part in parts if isinstance(part, torch.Tensor)])
        if counts is not None and counts[1]:
            self._recorder.rows.write_fact(RepeatedIndices, *counts)


def _counts(parts: list[Any]) -> tuple[int, int, int] | None:
    """Returns (places that are named, those that were named before, different ones of the latter); None if it is not
    known. A mask names no place twice."""
    if not all(part.dtype in _INTEGERS and is_measurable(part) and 0 < numel(part) <= _MOST_INDICES for part in parts):
        return None
    keys, *others = torch.broadcast_tensors(*(to(part.detach(), torch.int64) for part in parts))
    if numel(keys) > _MOST_INDICES:
        return None
    for other in others:
        keys = keys * (int(other.max()) - int(other.min()) + 1) + (other - other.min())
    ordered = reshape(keys, (-1,)).sort()[0]
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    different = 1 + int(count_nonzero(not_equal(again[1:], again[:-1]))) if numel(again) else 0
    return numel(ordered), numel(again), different
