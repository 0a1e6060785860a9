"""Finds the call that made a node of the graph, from the node's sequence number."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

from tensorlens.records.model import Call


class NodeCalls:
    """Indexes the calls of a trace by the sequence numbers of the nodes that they made.

    A call made all nodes of one range of sequence numbers. Ranges of similar size share a table, which cuts the
    sequence numbers into equal pieces as long as the largest of them: a range touches at most two pieces.
    """

    def __init__(self, calls: Iterable[Call]) -> None:
        tables: dict[int, dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
        for call in calls:
            first, end = call.nodes
            if first < end:
                size = (end - first - 1).bit_length()
                for piece in {first >> size, (end - 1) >> size}:
                    tables[size][piece].append(call)
        self._tables = sorted(tables.items())

    def innermost(self, sequence: int, before: int) -> Call | None:
        """Returns the call before event `before` that made the node, of nested calls the innermost, of others the
        latest."""
        for size, pieces in self._tables:
            calls = pieces.get(sequence >> size, ())
            innermost: Call | None = None
            for call in reversed(calls[: bisect_left(calls, before, key=lambda call: call.index)]):
                if call.nodes[0] <= sequence < call.nodes[1]:
                    if innermost is None or _count(call) < _count(innermost):
                        innermost = call
                    if not size:
                        break
            if innermost is not None:
                return innermost
        return None


def _count(call: Call) -> int:
    return call.nodes[1] - call.nodes[0]
