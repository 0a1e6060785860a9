"""Leads from the facts about values of a graph to the calls of the lines that have computed them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol, TypeVar

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call


class _Fact(Protocol):
    @property
    def index(self) -> int: ...


class _OfNode(_Fact, Protocol):
    @property
    def node(self) -> int: ...


_Of = TypeVar("_Of", bound=_OfNode)


def call_of(facts: TraceIndex, fact: _Fact, node: int) -> Call | None:
    """Returns the call that made a node of the pass that a fact is about."""
    starts = [backward.started for backward in facts.backwards]
    place = bisect_left(starts, fact.index)
    return facts.call_of_node(node, starts[place]) if place < len(starts) else None


def by_line(facts: TraceIndex, found: Iterable[_Of]) -> list[list[tuple[Call, _Of]]]:
    """Returns the facts with their calls, those of one line together."""
    lines = defaultdict[int, list[tuple[Call, _Of]]](list)
    for each in found:
        call = call_of(facts, each, each.node)
        if call is not None:
            lines[call.site].append((call, each))
    return list(lines.values())
