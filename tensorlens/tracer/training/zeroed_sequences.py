"""Counts the sequences whose CTC loss is infinite, and that `zero_infinity=True` leaves out of a backward pass.

It also counts the labels of such a loss that are its blank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tensorlens.records.training_values import BlankLabels, ZeroedSequences
from tensorlens.tracer.isolation.readable import is_in_main_memory, is_measurable
from tensorlens.tracer.isolation.torch_originals import count_nonzero, isinf, numel, reshape, tolist
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.graph import Node, data_of, raw_saved_in

_MOST_PASSES = 64  # the first ones
_MOST_NODES = 24  # from the root on
_MOST_LOOKS = 8  # at labels
_MOST_LABELS = 1 << 16
_NODE = "CtcLossBackward0"


class InfiniteLosses:
    """Looks at the losses of one run. They are in the graph, one for each sequence, as they were computed."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._passes = 0
        self._looks = 0

    @property
    def is_done(self) -> bool:
        """Returns whether it looks at no later pass."""
        return self._passes >= _MOST_PASSES

    def begin_pass(self, roots: Sequence[torch.Tensor]) -> None:
        """Writes a fact for each CTC loss near the roots that leaves infinite values out."""
        self._passes += 1
        if self._passes > _MOST_PASSES:
            return
        waiting: list[Any] = [root.grad_fn for root in roots[:1] if root.grad_fn is not None]
        for node in waiting:
            if node.name() == _NODE:
                self._look(node)
                self._look_at_labels(node)
            elif len(waiting) < _MOST_NODES:
                waiting += [each for each, _ in node.next_functions if each is not None]

    def _look(self, node: Node) -> None:
        attributes: Any = node
        losses = data_of(raw_saved_in(node, "result0")) if attributes._saved_zero_infinity else None
        if losses is not None and is_measurable(losses) and is_in_main_memory(losses):
            lengths = [_numbers(each) for each in (attributes._saved_input_lengths, attributes._saved_target_lengths)]
            short = sum(steps < labels for steps, labels in zip(*lengths, strict=False))
            self._recorder.rows.write_fact(ZeroedSequences, numel(losses), int(count_nonzero(isinf(losses))), short)

    def _look_at_labels(self, node: Node) -> None:
        """Writes a fact if labels within the lengths of their sequences are the blank."""
        attributes: Any = node
        targets = data_of(raw_saved_in(node, "targets")) if self._looks < _MOST_LOOKS else None
        if targets is None or not is_measurable(targets) or not is_in_main_memory(targets):
            return
        self._looks += 1
        lengths, blank = _numbers(attributes._saved_target_lengths), attributes._saved_blank
        if numel(targets) > _MOST_LABELS or not lengths:
            return
        rows = tolist(targets)
        if rows and isinstance(rows[0], list):
            labels = [each for row, length in zip(rows, lengths, strict=False) for each in row[:length]]
        else:
            labels = rows[: sum(lengths)]
        blanks = sum(each == blank for each in labels)
        if blanks:
            self._recorder.rows.write_fact(BlankLabels, blank, len(labels), blanks)


def _numbers(lengths: Any) -> list[int]:
    """Returns lengths that an operation has kept as numbers or as a tensor."""
    if not isinstance(lengths, torch.Tensor):
        return list(lengths)
    known = is_measurable(lengths) and is_in_main_memory(lengths)
    return [int(each) for each in tolist(reshape(lengths, (-1,)))] if known else []
