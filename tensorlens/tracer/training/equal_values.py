"""Finds parameters that equal each other in every bit, and those whose rows do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch

from tensorlens.records.training import ParameterMovement
from tensorlens.records.training_values import EqualParameters, EqualRows
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import data_ptr, detach, equal, numel
from tensorlens.tracer.recording.recorder import Recorder

_MIN_ROUNDS = 2
Moved = tuple[torch.Tensor, int, ParameterMovement]
"""A parameter, in how many rounds it had a gradient with values, and how far it has moved."""


class EqualValues:
    """Keeps what the last look at each parameter of a run has found: some are gone when the run ends."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._equal: dict[tuple[int, ...], int] = {}  # in how many rounds these had a gradient
        self._rows: dict[int, tuple[int, int]] = {}  # rows, rounds

    def write(self, number: int, found: Sequence[Moved]) -> None:
        """Looks at the parameters that gradients have moved, and writes the facts."""
        seen = {movement.tensor for _, _, movement in found}
        self._equal = {tensors: rounds for tensors, rounds in self._equal.items() if seen.isdisjoint(tensors)}
        self._rows = {tensor: each for tensor, each in self._rows.items() if tensor not in seen}
        self._look(found)
        for tensors, rounds in self._equal.items():
            self._recorder.rows.write_fact(EqualParameters, number, tensors, rounds)
        for tensor, counts in self._rows.items():
            self._recorder.rows.write_fact(EqualRows, number, tensor, *counts)

    def _look(self, found: Sequence[Moved]) -> None:
        alike: dict[object, list[Moved]] = defaultdict(list)
        for each in found:
            tensor, rounds, movement = each
            if rounds >= _MIN_ROUNDS and movement.distance > 0 and is_measurable(tensor):
                alike[tensor.shape, tensor.dtype, tensor.device, movement.size, movement.distance, rounds].append(each)
                if _has_equal_rows(detach(tensor)):
                    self._rows[movement.tensor] = tensor.shape[0], rounds
        for group in alike.values():
            left = group
            while len(left) > 1:
                first, *others = left
                copies = [each for each in others if _is_copy(first[0], each[0])]
                left = [each for each in others if not any(each is other for other in copies)]
                if copies:
                    self._equal[tuple(movement.tensor for _, _, movement in (first, *copies))] = first[1]


def _is_copy(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns whether two tensors have equal values in memory of their own."""
    return data_ptr(one) != data_ptr(other) and equal(detach(one), detach(other))


def _has_equal_rows(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 2 or tensor.shape[0] < 2 or not numel(tensor) or not equal(tensor[0], tensor[1]):
        return False
    return equal(tensor, tensor[:1].expand_as(tensor))
