"""Graphs of earlier steps that are still alive: looked for at a few steps of a run, twice as far apart each time.

What lives to the end, or is read later, the rows tell already; this is for a list that is emptied before that.
"""

from __future__ import annotations

from typing import Any

import torch

from tensorlens.journal.rows import NOTICED

FIRST = 5  # the round at which to look first
FEWEST = 3  # tensors
MAX_TOLD = 2_000


class RetainedGraphs:
    """The rounds of one run: an optimizer's steps or, as long as none stepped, backward passes."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._steps = False
        self._begin()

    def _begin(self) -> None:
        self._rounds, self._due = 0, FIRST
        self._before = 0  # what was met before the last round ended has a smaller id

    def round_ends(self, by_step: bool) -> None:
        if by_step and not self._steps:
            self._steps = True
            self._begin()
        if by_step != self._steps:
            return
        self._rounds += 1
        if self._rounds == self._due:
            self._due *= 2
            self._look()
        self._before = next(self._recorder.tensor_ids.numbers)

    def _look(self) -> None:
        held = [entry[1] for entry in list(self._recorder.tensor_ids.known.values()) if self._is_held(entry)]
        if len(held) >= FEWEST:
            self._recorder.rows.append((NOTICED, "held", tuple(sorted(held)[-MAX_TOLD:])))

    def _is_held(self, entry: Any) -> bool:
        tensor = entry[0]() if entry[1] < self._before else None
        if type(tensor) is not torch.Tensor or not tensor.requires_grad:
            return False
        return tensor._base is None and not tensor.is_leaf  # a view may have to make its node anew to tell
