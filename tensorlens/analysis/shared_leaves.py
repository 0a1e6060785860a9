"""Finds the leaves that a backward pass would reach from many tensors, as from the terms of a sum."""

from __future__ import annotations

from collections.abc import Set

from tensorlens.analysis.graph_search import GraphSearch
from tensorlens.analysis.lineage import graph_leaves, leads_to
from tensorlens.analysis.trace_index import TraceIndex


class SharedLeaves:
    """Finds leaves once for all tensors that the same calls made: one call may have made thousands.

    `among` are the leaves that are looked for.
    """

    def __init__(self, facts: TraceIndex, among: Set[int]) -> None:
        self._facts = facts
        self._among = frozenset(among)
        self._found: dict[tuple[int, ...], frozenset[int]] = {}
        self._leading: dict[tuple[int, ...], bool] = {}

    def of(self, root: int, before: int) -> frozenset[int]:
        """Returns the leaves that a pass would reach from a tensor as event `before` uses it."""
        made = self._calls(root, before)
        if made not in self._found:
            self._found[made] = self._among & graph_leaves(self._facts, root, before)
        return self._found[made]

    def is_any_above(self, root: int, before: int) -> bool:
        """Returns whether a pass would reach one of the leaves from a tensor as event `before` uses it."""
        made = self._calls(root, before)
        if made not in self._leading:
            self._leading[made] = leads_to(self._facts, root, before, self._among)
        return self._leading[made]

    def _calls(self, root: int, before: int) -> tuple[int, ...]:
        """Returns the calls that recorded a tensor's history; the tensor and the event if there are none."""
        state = self._facts.state(root, before - 1)
        if state is None or state.is_leaf or not state.requires_grad:
            return (-1, root, before)
        made = GraphSearch(self._facts).new_calls(root, before)
        return tuple(call.index for call in made) or (-1, root, before)
