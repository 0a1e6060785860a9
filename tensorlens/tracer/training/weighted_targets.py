"""Counts the targets of a loss with weights by class, and notes the weights, as the graph of a pass has kept them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from tensorlens.records.training_values import WeightedTargets
from tensorlens.tracer.isolation.torch_originals import numel, reshape, tolist
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.graph import Node
from tensorlens.tracer.training.saved_values import saved, saved_number

_MOST_PASSES = 256
_MOST_WITHOUT = 8  # passes before the first such loss
_MOST_NODES = 24  # from the root on
_MOST_TARGETS, _MOST_CLASSES = 1 << 14, 256
_CLASSES = ("NllLossBackward0", "NllLoss2DBackward0")
_ONES = "BinaryCrossEntropyWithLogitsBackward0"


class TargetCounts:
    """Counts the targets of one run, while the weights stay the same."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._passes = self._counted = 0
        self._weights: list[float] = []
        self._counts: Counter[float] = Counter()

    @property
    def is_done(self) -> bool:
        """Returns whether it looks at no later pass."""
        return self._passes >= (_MOST_PASSES if self._weights else _MOST_WITHOUT)

    def begin_pass(self, roots: Sequence[torch.Tensor]) -> None:
        """Counts the targets of a pass, and writes what was counted after the passes 1, 2, 4, 8 and so on."""
        self._passes += 1
        if self._passes > (_MOST_PASSES if self._weights else _MOST_WITHOUT):
            return
        waiting: list[Any] = [root.grad_fn for root in roots[:1] if root.grad_fn is not None]
        found = list[tuple[bool, list[float], list[float]]]()
        for node in waiting:
            look = _look(node)
            if look is not None:
                found.append(look)
            elif len(waiting) < _MOST_NODES:
                waiting += [each for each, _ in node.next_functions if each is not None]
        if not found:
            return
        is_binary, weights, targets = found[0]
        if len(found) > 1 or (self._weights and weights != self._weights):
            self._passes = _MOST_PASSES
            return
        self._weights, self._counted = weights, self._counted + 1
        self._counts.update(targets)
        if self._counted & (self._counted - 1) == 0:
            self._write(is_binary)

    def _write(self, is_binary: bool) -> None:
        if is_binary and set(self._counts) != {0, 1}:
            return
        counts = tuple(self._counts[number] for number in range(2 if is_binary else len(self._weights)))
        self._recorder.rows.write_fact(WeightedTargets, is_binary, tuple(self._weights), counts)


def _look(node: Node) -> tuple[bool, list[float], list[float]] | None:
    """Returns (whether the loss is binary, its weights, its targets) of a node."""
    name = node.name()
    is_binary = name == _ONES
    if not is_binary and name not in _CLASSES:
        return None
    weight, target = saved(node, "pos_weight" if is_binary else "weight"), saved(node, "target")
    if weight is None or target is None:
        return None
    most = 1 if is_binary else _MOST_CLASSES
    if numel(target) > _MOST_TARGETS or not 0 < numel(weight) <= most:
        return None
    weights, targets = (tolist(reshape(each, (-1,))) for each in (weight, target))
    if not is_binary:
        ignored = saved_number(node, "ignore_index")
        targets = [each for each in targets if each != ignored]
    return is_binary, weights, targets
