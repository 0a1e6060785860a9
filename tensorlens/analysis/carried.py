"""Finds the tensor that carries a graph from one backward pass into the next: a recurrent state, a list of results."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.graph_search import GraphSearch
from tensorlens.analysis.lineage import MAX_CALLS, ancestry, calls_reached_by
from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call


@dataclass(frozen=True, slots=True)
class Carried:
    """A tensor with a history that was made before a pass, and the first call of the next graph that used it."""

    tensor: int
    made: Call
    use: Call


def carried(facts: TraceIndex, failed: Backward, since: Backward, toward: Call) -> Carried | None:
    """Finds the tensor through which the graph of `failed` leads back to `toward`, a call before the pass `since`.

    None if nothing of the graph was made after that pass, so that both passes begin at the same results.
    """
    reached = calls_reached_by(facts, failed).calls
    for call in facts.calls:
        if call.index <= since.index or call.index not in reached:
            continue
        for access in call.inputs:
            made = next(iter(facts.producers(access.tensor, call.index)), None)
            if made is None or made.index > since.index or not _is_computed(facts, access.tensor, call.index):
                continue
            if made is toward or any(each is toward for _, each in ancestry(facts, access.tensor, call.index)):
                return Carried(access.tensor, made, call)
    return None


def every_carried(facts: TraceIndex, failed: Backward, since: Backward) -> list[Carried]:
    """Lists the tensors through which the graph of `failed` leads back into what the pass `since` went through.

    A tensor is listed once for each line that uses it: they may know it by different names.
    """
    reached, freed = calls_reached_by(facts, failed).calls, calls_reached_by(facts, since).calls
    found: dict[tuple[int, int], Carried] = {}
    for call in facts.calls:
        if call.index <= since.index or call.index not in reached:
            continue
        for number in (access.tensor for access in call.inputs if (access.tensor, call.site) not in found):
            made = next(iter(facts.producers(number, call.index)), None)
            if made is not None and made.index < since.index and _is_computed(facts, number, call.index):
                if not freed.isdisjoint(_graph_above(facts, number, call.index)):
                    found[number, call.site] = Carried(number, made, call)
    return list(found.values())


def _graph_above(facts: TraceIndex, number: int, before: int) -> set[int]:
    """Returns the calls that recorded the graph of a tensor."""
    queue, above = deque([(number, before)]), set[int]()
    search = GraphSearch(facts)
    while queue and len(above) < MAX_CALLS:
        tensor, user = queue.popleft()
        if not _is_computed(facts, tensor, user):
            continue
        for call in search.new_calls(tensor, user):
            if call.index not in above:
                above.add(call.index)
                queue.extend((access.tensor, call.index) for access in call.inputs)
    return above


def _is_computed(facts: TraceIndex, number: int, at: int) -> bool:
    state = facts.state(number, at - 1)
    return state is not None and state.requires_grad and not state.is_leaf


def name_in_function(facts: TraceIndex, found: Carried, site: int) -> str | None:
    """Returns the name by which the function at a site carries the tensor.

    When the run ended, the name referred to the tensor, or to the next one that the same expression made. And the line
    that led to the use of the tensor reads that name, or the object that it is an attribute of.
    """
    function, read = facts.scope(site), names_read(facts, found, site)
    for binding in facts.trace.end.bindings:
        if binding.scope != function[1] or root_of(binding.name) not in read:
            continue
        if binding.tensor == found.tensor or _is_next(facts, found, binding.tensor):
            return binding.name
    return None


def names_in_frame(facts: TraceIndex, found: Carried, site: int) -> Iterator[tuple[str, bool]]:
    """Yields the names by which the function of a site, which was running when the program failed, knows a carried
    tensor or the one that took its place; and whether it is the carried tensor itself."""
    scope = place_of(facts.trace.sites[site])[1]
    for binding in facts.trace.end.bindings:
        if binding.scope == scope and binding.tensor == found.tensor:
            yield binding.name, True
        elif binding.scope == scope and _is_next(facts, found, binding.tensor):
            if facts.tensor(binding.tensor).shape == facts.tensor(found.tensor).shape:
                yield binding.name, False


def names_read(facts: TraceIndex, found: Carried, site: int) -> set[str]:
    """Returns the names that the function of a site reads on the lines that led to the use of a carried tensor."""
    function = facts.scope(site)
    lines = {
        facts.trace.sites[each].span.line for each in facts.call_chain(found.use.site) if facts.scope(each) == function
    }
    nodes = [node for node in ast.walk(facts.tree(function[0])) if getattr(node, "lineno", 0) in lines]
    changed = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    return {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Load) or id(node) in changed)
    }


def _is_next(facts: TraceIndex, found: Carried, number: int) -> bool:
    made, first = facts.creator(number), facts.creator(found.tensor)
    if made is None or first is None or (made.site, made.op) != (first.site, first.op):
        return False
    return _position(made, number) == _position(first, found.tensor)


def _position(call: Call, number: int) -> int:
    return next((i for i, access in enumerate(call.outputs) if access.tensor == number), -1)
