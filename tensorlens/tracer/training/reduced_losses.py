"""Notes how the loss of a backward pass was reduced to one number: over how many elements, and with which weight."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import torch

from tensorlens.records.training import ReducedLoss
from tensorlens.tracer.isolation.readable import is_in_main_memory
from tensorlens.tracer.isolation.torch_originals import numel, tolist
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.graph import Node, data_of, raw_saved_in

MOST = 1_000  # passes of a run that are noted
_MAX_NODES = 16  # between the root and the reduction
_SUMS, _MEANS = ("SumBackward0",), ("MeanBackward0",)
_LOSSES = (
    "MseLossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0", "BinaryCrossEntropyBackward0",
    "BinaryCrossEntropyWithLogitsBackward0",
)  # fmt: skip
_COUNTED = ("NllLossBackward0", "NllLoss2DBackward0")  # these leave out what `ignore_index` marks
_MEAN, _SUM = 1, 2  # as PyTorch numbers reductions


class ReducedLosses:
    """Notes the reductions of one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._noted = 0

    @property
    def is_done(self) -> bool:
        """Returns whether it looks at no later pass."""
        return self._noted >= MOST

    def begin_pass(self, roots: Sequence[torch.Tensor]) -> None:
        """Notes the reduction of a pass with one root, if the graph shows it."""
        if len(roots) != 1 or self.is_done or roots[0].grad_fn is None:
            return
        found = _reduction(roots[0].grad_fn)  # type: ignore[arg-type]
        if found is not None:
            self._noted += 1
            self._recorder.rows.write_fact(ReducedLoss, *found)


def _reduction(node: Node) -> tuple[bool, float, float] | None:
    """Returns (whether it is a mean, number of elements, constant factor of the mean or sum)."""
    factor = 1.0
    for _ in range(_MAX_NODES):
        name = node.name()
        reduced = _elements(node, name)
        if reduced is not None:
            return (*reduced, factor) if isfinite(factor) else None
        following = [each for each, _ in node.next_functions if each is not None]
        if len(following) != 1:
            return None
        if name in ("MulBackward0", "DivBackward0"):
            constant = _constant(node)
            if constant is None or not (constant or name == "MulBackward0"):
                return None
            factor = factor * constant if name == "MulBackward0" else factor / constant
        elif name == "NegBackward0":
            factor = -factor
        elif name != "AddBackward0":
            return None
        node = following[0]
    return None


def _elements(node: Node, name: str) -> tuple[bool, float] | None:
    """Returns (whether a node is a mean, number of elements) of a node that reduces to one number."""
    attributes: Any = node
    if name in _SUMS or name in _MEANS:
        count = 1
        for size in attributes._saved_self_sym_sizes:
            count *= int(size)
        return name in _MEANS, float(count)
    if name not in _LOSSES and name not in _COUNTED:
        return None
    reduction = attributes._saved_reduction
    saved = data_of(raw_saved_in(node, "total_weight" if name in _COUNTED else "self"))
    if saved is None or reduction not in (_MEAN, _SUM):
        return None
    if name not in _COUNTED:
        return reduction == _MEAN, float(numel(saved))
    if (
        data_of(raw_saved_in(node, "weight")) is not None or reduction == _SUM or not is_in_main_memory(saved)
    ):  # it would have to wait for a device
        return None
    return True, float(tolist(saved))


def _constant(node: Node) -> float | None:
    """Returns the single number that a product or a quotient keeps."""
    for slot in ("other", "self"):
        data = data_of(raw_saved_in(node, slot))
        if data is not None:
            is_number = numel(data) == 1 and is_in_main_memory(data) and not data.is_complex()
            return float(tolist(data.detach().reshape(()))) if is_number else None
    return None
