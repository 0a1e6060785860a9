"""Finds graphs that outlive the training step that made them, such as those of losses that a list collects.

It looks in a few rounds: the 5th, the 10th, the 20th and so on. Other rows show a graph that lives until the run
ends, or that a later call reads. Only this search finds the graphs in a list that the program empties in between.
"""

from __future__ import annotations

import torch

from tensorlens.records.observations import RetainedTensors
from tensorlens.tracer.recording.tensor_ids import Entry
from tensorlens.tracer.recording.tensor_states import TensorStates

FIRST_ROUND = 5  # the first round at which to look
MIN_TENSORS = 3  # fewer are not reported
MAX_TENSORS = 2_000  # in one row


class RetainedGraphs:
    """Counts the rounds of a run: the steps of optimizers or, until the first one, backward passes."""

    def __init__(self, recorder: TensorStates) -> None:
        self._recorder = recorder
        self.counts_steps = False
        self._restart()

    def _restart(self) -> None:
        self._rounds, self._due = 0, FIRST_ROUND
        self._round_start = 0  # tensors that were seen before this round have smaller ids

    def round_ends(self, by_step: bool) -> None:
        """Notes the end of a step (`by_step`) or of a backward pass."""
        if by_step and not self.counts_steps:
            self.counts_steps = True
            self._restart()
        if by_step != self.counts_steps:
            return
        self._rounds += 1
        if self._rounds == self._due:
            self._due *= 2
            self._write_retained()
        self._round_start = next(self._recorder.tensor_ids.numbers)

    def _write_retained(self) -> None:
        retained = [entry[1] for entry in list(self._recorder.tensor_ids.known.values()) if self._is_retained(entry)]
        if len(retained) >= MIN_TENSORS:
            self._recorder.rows.write_fact(RetainedTensors, tuple(sorted(retained)[-MAX_TENSORS:]))

    def _is_retained(self, entry: Entry) -> bool:
        tensor = entry[0]() if entry[1] < self._round_start else None
        if type(tensor) is not torch.Tensor or not tensor.requires_grad:
            return False
        return tensor._base is not None or not tensor.is_leaf  # reading `is_leaf` of a view may create its node anew
