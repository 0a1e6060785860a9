"""Finds the function that was running at two events, and the line of each in it: there their order can change."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tensorlens.analysis.code_around import function_around, statements_in
from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.naming.places import callers, place_of
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call, Failure


@dataclass(frozen=True, slots=True)
class SharedFrame:
    """The sites of a change and of the backward that needs the old values, in one run of the function that both share.

    The change is above the backward there.
    """

    change: int
    backward: int


def shared_frame(facts: TraceIndex, change: Call | Backward, failure: Failure) -> SharedFrame | None:
    """Finds the innermost run of a function that both the change and the failed backward happened in.

    None if the trace does not show it: it knows the callers of the first run of each line. A pass at the same line in
    between means another iteration.
    """
    if any(b.site == failure.site and change.index < b.index < failure.index for b in facts.backwards):
        return None
    chain = [*list(callers(facts.trace, change.site))[::-1], change.site]
    for one, other in zip(chain, failure.stack, strict=False):
        first, second = facts.span(one), facts.span(other)
        if first is None or second is None or facts.same_line(one, other):
            continue
        same = facts.scope(one) == facts.scope(other)
        known = one == change.site or _is_certain(facts, chain, one, change)
        return SharedFrame(one, other) if same and known and first.line < second.line else None
    return None


def _is_certain(facts: TraceIndex, chain: Sequence[int], outer: int, change: Call | Backward) -> bool:
    """Returns whether the line at `outer` made the call in which the change happened.

    It did if the change belongs to the first run of its line, whose callers the trace knows: nothing else has happened
    in the function of `outer` since that run began. It also did if no other line calls these functions.
    """
    inner = chain[chain.index(outer) :]
    if all(is_only_call(facts, caller, callee) for caller, callee in pairwise(inner)):
        return True
    scope = facts.scope(outer)
    runs = (e.index for e in facts.events if isinstance(e, Call | Backward) and e.site == change.site)
    first = next(runs, change.index)
    between = facts.events[facts.trace.position(first) : facts.trace.position(change.index)]
    sites = (e.site for e in between if isinstance(e, Call | Backward))
    whole = len(facts.events) == facts.events[-1].index + 1
    return whole and all(facts.scope(site) != scope for site in sites)


def is_only_call(facts: TraceIndex, caller: int, callee: int) -> bool:
    """Returns whether the line at `caller` has the only call of the function at `callee` in all sources."""
    name = place_of(facts.trace.sites[callee])[1].rpartition(".")[2]
    lines = [
        (file, node.lineno)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and last_name(node.func) == name
    ]
    span = facts.span(caller)
    return span is not None and lines == [(span.file, span.line)]


def movable_lines(facts: TraceIndex, frame: SharedFrame) -> tuple[int, int] | None:
    """Returns the first and last line of the statement around the change that can move below the backward.

    None if a loop around the change also makes a part of a graph: then the two cannot be separated.
    """
    change, backward = facts.span(frame.change), facts.span(frame.backward)
    if change is None or backward is None:
        return None
    around = [
        node
        for node in statements_in(facts, change.file)
        if node.lineno <= change.line <= (node.end_lineno or node.lineno)
        and not node.lineno <= backward.line <= (node.end_lineno or node.lineno)
    ]
    whole = min(around, key=lambda node: node.lineno, default=None)
    if whole is None:
        return change.line, change.line
    if isinstance(max(around, key=lambda node: node.lineno), ast.Assign | ast.AnnAssign | ast.Return):
        return None  # its value may be needed where it is
    first, last = whole.lineno, whole.end_lineno or whole.lineno
    for call in facts.calls if last > first else ():
        span = facts.span(call.site)
        if call.nodes[1] > call.nodes[0] and span is not None and span.file == change.file:
            if first <= span.line <= last:
                return None
    return first, last


def is_read_between(facts: TraceIndex, counter: int, after: int, before: int) -> bool:
    """Returns whether a call other than a write used the memory of a version counter between two events."""
    for call in facts.calls:
        if after < call.index < before and not call.writes and not call.op.endswith("__set__"):
            if any(facts.tensor(access.tensor).counter == counter for access in call.inputs):
                return True
    return False


def loop_around(facts: TraceIndex, site: int, without: int) -> bool:
    """Returns whether a loop repeats the line at `site` and not the line at `without`."""
    span, other = facts.span(site), facts.span(without)
    if span is None or other is None:
        return False
    loops = (n for n in statements_in(facts, span.file) if isinstance(n, ast.For | ast.AsyncFor | ast.While))
    around = [loop for loop in loops if loop.lineno <= span.line <= (loop.end_lineno or loop.lineno)]
    return any(not loop.lineno <= other.line <= (loop.end_lineno or loop.lineno) for loop in around)


def is_argument(facts: TraceIndex, site: int, name: str) -> bool:
    """Returns whether the first part of a name is an argument of the function at a site."""
    return _holds(facts, site, name, ast.arg)


def is_local(facts: TraceIndex, site: int, name: str) -> bool:
    """Returns whether the function at a site, or the script outside of functions, may assign to a name as its own."""
    root = root_of(name)
    if root != name or facts.trace.sites[site].function == "<module>":
        return True
    return _holds(facts, site, name, ast.arg) or _holds(facts, site, name, ast.Name)


def is_returned(facts: TraceIndex, site: int, name: str) -> bool:
    """Returns whether the line at a site is a `return`, or the function there returns an expression that reads a
    name."""
    span = facts.trace.sites[site].span
    inner = function_around(facts, span.file, span.line)
    returns = [node for node in ast.walk(inner) if isinstance(node, ast.Return)] if inner is not None else []
    if any(node.lineno <= span.line <= (node.end_lineno or node.lineno) for node in returns):
        return True
    return any(isinstance(part, ast.Name) and part.id == name for node in returns for part in ast.walk(node))


def _holds(facts: TraceIndex, site: int, name: str, kind: type[ast.arg] | type[ast.Name]) -> bool:
    root = root_of(name)
    span = facts.trace.sites[site].span
    inner = function_around(facts, span.file, span.line)
    for node in () if inner is None else ast.walk(inner):
        if isinstance(node, ast.arg) and kind is ast.arg and node.arg == root:
            return True
        if isinstance(node, ast.Name) and kind is ast.Name and node.id == root and isinstance(node.ctx, ast.Store):
            return True
    return False
