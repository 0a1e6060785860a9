"""Finds which statements before a change have results that the backward after it needs and that the change made stale.

The names and the statements are those of one run of one block: the function that was running at both.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tensorlens.analysis.code_around import blocks_of
from tensorlens.analysis.lineage import calls_reached_by
from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.shared_frame import SharedFrame
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Access, Backward, Call, Failure


@dataclass(frozen=True, slots=True)
class SharedBlock:
    """A block whose statement `change` overwrote what the later statement `backward` needs."""

    file: str
    statements: Sequence[ast.stmt]
    change: int  # positions in `statements`
    backward: int
    needing: ast.AST  # the expression that runs the backward


def shared_block(facts: TraceIndex, frame: SharedFrame) -> SharedBlock | None:
    """Finds the block that the lines of a shared frame are in; None if they are in different ones of a function."""
    change, backward = facts.span(frame.change), facts.span(frame.backward)
    needing = None if backward is None else facts.names.syntax.node(backward)
    if change is None or backward is None or needing is None:
        return None
    found: SharedBlock | None = None
    for node in ast.walk(facts.tree(change.file)):
        for block in blocks_of(node):
            one, other = _position(block, change.line), _position(block, backward.line)
            if one is not None and other is not None and one < other:
                found = SharedBlock(change.file, block, one, other, needing)
    return found


def _position(block: Sequence[ast.stmt], line: int) -> int | None:
    around = (n for n, each in enumerate(block) if each.lineno <= line <= (each.end_lineno or each.lineno))
    return next(around, None)


class FrameTensors:
    """Answers what the variables of a running function refer to when the run fails, and which of that is stale.

    A graph is stale if an operation in it read memory that was overwritten since, or if an earlier pass freed it.
    """

    def __init__(self, facts: TraceIndex, failure: Failure, site: int, changed_at: int) -> None:
        self._facts, self._failure, self._since = facts, failure, changed_at
        here = facts.trace.sites[site]
        scope, file = here.function, here.span.file
        running = [facts.trace.sites[each] for each in failure.stack]
        self.is_known = sum((each.function, each.span.file) == (scope, file) for each in running) == 1
        self._bound: dict[str, list[tuple[str, int]]] = {}
        for binding in facts.trace.end.bindings:
            if binding.scope == scope:
                root = root_of(binding.name)
                self._bound.setdefault(root, []).append((binding.name, binding.tensor))

    def tensors(self, name: str) -> list[int]:
        return [number for _, number in self._bound.get(name, ())]

    def is_stale(self, name: str) -> bool:
        return any(self._is_stale(number) for number in self.tensors(name))

    def has_stale_attribute(self, name: str) -> bool:
        """Returns whether an object reaches a stale result by an attribute."""
        return any("." in path and self._is_stale(number) for path, number in self._bound.get(name, ()))

    def is_overwritten(self, name: str) -> bool:
        """Returns whether the values of a variable that is no parameter changed since the change that failed."""
        facts, at = self._facts, self._failure.index
        for path, number in self._bound.get(name, ()):
            tensor = facts.tensor(number)
            is_trained = tensor.type == "Parameter" or facts.is_leaf_requiring_grad(number, at)
            if "." not in path and not is_trained:
                if any(event.index >= self._since for event, _ in facts.writes(tensor.counter)):
                    return True
        return False

    def calls(self, name: str) -> frozenset[int]:
        """Returns the calls in the graphs of a variable's tensors."""
        return frozenset(index for number in self.tensors(name) for index in self._graph(number))

    def _graph(self, number: int) -> frozenset[int]:
        index = self._failure.index
        root = (Access(number, None),)
        return calls_reached_by(
            self._facts, Backward(index, "", 0, root, (), index, retain_graph=True, create_graph=False, failed=False)
        ).calls

    def _is_stale(self, number: int) -> bool:
        for index in self._graph(number):
            call = self._facts.call(index)
            if call is not None and index < self._since and (index in self._freed or self._read_overwritten(call)):
                return True
        return False

    def _read_overwritten(self, call: Call) -> bool:
        return any(self._facts.tensor(access.tensor).counter in self._overwritten for access in call.inputs)

    @cached_property
    def _overwritten(self) -> set[int]:
        """The version counters that were written from the change on."""
        between = (e for e in self._facts.calls if self._since <= e.index < self._failure.index)
        return {self._facts.tensor(write.tensor).counter for event in between for write in event.writes}

    @cached_property
    def _freed(self) -> frozenset[int]:
        passes = [b for b in self._facts.backwards if b.index < self._failure.index and not b.retain_graph]
        return frozenset().union(*(calls_reached_by(self._facts, b).calls for b in passes[-8:] if not b.failed))


def functions_of(facts: TraceIndex, calls: frozenset[int], site: int) -> set[tuple[str, str]] | None:
    """Returns the functions, other than the one at a site, in which recorded calls were made; as file and name."""
    here = facts.scope(site)
    places: set[tuple[str, str]] = set()
    for index in calls:
        call = facts.call(index)
        if call is None:
            return None
        current: int | None = call.site
        while current is not None and facts.scope(current) != here:
            places.add(facts.scope(current))
            current = facts.trace.sites[current].caller
        if current is None:
            places.add(facts.scope(call.site))
    return places
