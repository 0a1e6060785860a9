"""Looks at values that the graph of a loss has saved, when a few of the backward passes of a run begin.

The graph has the values themselves: which places a call takes, and what it has computed, however a line writes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch

from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.graph import Node, nodes_of
from tensorlens.tracer.training.chosen_elements import look_at_elements
from tensorlens.tracer.training.counted_targets import look_at_targets
from tensorlens.tracer.training.normalized_tables import look_at_tables
from tensorlens.tracer.training.own_ids import look_at_own_ids
from tensorlens.tracer.training.picked_steps import look_at_steps
from tensorlens.tracer.training.summed_rows import look_at_sums

_LOOKS = look_at_tables, look_at_elements, look_at_targets, look_at_steps, look_at_sums, look_at_own_ids
_MOST_NODES = 4_000
_ALWAYS, _MOST_LOOKS = 8, 32


class GraphValues:
    """Looks at the first passes, then the 16th, the 32nd and so on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._passes = self._looks = 0

    @property
    def is_done(self) -> bool:
        """Returns whether it looks at no later pass."""
        return self._looks >= _MOST_LOOKS

    def begin_pass(self, roots: Sequence[torch.Tensor]) -> None:
        self._passes += 1
        is_due = self._passes <= _ALWAYS or not self._passes & (self._passes - 1)
        if not is_due or self._looks >= _MOST_LOOKS:
            return
        self._looks += 1
        named: dict[str, list[Node]] = defaultdict(list)
        for node in nodes_of(roots, _MOST_NODES):
            named[node.name()].append(node)
        with torch.no_grad():
            for look in _LOOKS:
                look(self._recorder.rows, named)
