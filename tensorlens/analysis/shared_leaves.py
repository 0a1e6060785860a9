"""Finds the leaves that a backward pass would reach from many tensors, as from the terms of a sum."""

from __future__ import annotations

from tensorlens.analysis.graph_search import GraphSearch
from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex


class SharedLeaves:
    """Finds leaves once for all tensors that the same calls made: one call may have made thousands.

    `among` are the leaves that are looked for.
    """

    def __init__(self, facts: TraceIndex, among: frozenset[int]) -> None:
        self._facts = facts
        self._among = among
        self._found: dict[tuple[int, ...], frozenset[int]] = {}

    def of(self, root: int, before: int) -> frozenset[int]:
        """Returns the leaves that a pass would reach from a tensor as event `before` uses it."""
        state = self._facts.state(root, before - 1)
        if state is None or not state.requires_grad:
            return frozenset()
        calls = () if state.is_leaf else tuple(GraphSearch(self._facts).new_calls(root, before))
        if not calls:
            return self._among & graph_leaves(self._facts, root, before)
        key = tuple(call.index for call in calls)
        if key not in self._found:
            self._found[key] = self._among & graph_leaves(self._facts, root, before)
        return self._found[key]
