"""Finds modules that one function calls by two names: by one as a constant target, by the other to train it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import scope_around, statement_at
from tensorlens.analysis.lineage import ancestry, calls_reached_by
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call, GradMode, Span

_DETACHING = frozenset({"Tensor.detach", "torch.detach", "Tensor.data.__get__"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_MAX_PASSES = 20


@dataclass(frozen=True, slots=True)
class TwoNames:
    """A module under two names, and the calls of the module by them."""

    constant: Span  # "target(s2)": its result is cut from the graph, and the loss is computed from it
    constant_name: str
    trained: Span  # "policy(s)"
    trained_name: str


@dataclass(frozen=True, slots=True)
class _Cut:
    site: int
    calls: tuple[ast.Call, ...]  # in the code whose result has no graph
    events: tuple[Call, ...]  # that ran there


def two_names(facts: TraceIndex, trained: set[int]) -> Iterator[TwoNames]:
    """Yields each pair of names once. `trained` are the parameters that optimizers step."""
    found: set[tuple[str, str]] = set()
    for cut in _cuts(facts):
        file, function, line = place_of(facts.trace.sites[cut.site])
        modules = modules_in(facts, function, trained)
        for constant in cut.calls:
            first = plain_name(constant.func) or ""
            for other in _own_calls(scope_around(facts, file, line)):
                second = plain_name(other.func) or ""
                pair = first, second
                if other in cut.calls or pair in found or not _is_one(modules, *pair):
                    continue
                if not _ran(facts, cut, constant, modules):
                    continue
                if _is_target(facts, cut, set(modules[first].values())):
                    found.add(pair)
                    yield TwoNames(facts.span_of(constant, file), first, facts.span_of(other, file), second)


def _is_one(modules: dict[str, dict[str, int]], one: str, other: str) -> bool:
    return one != other and one in modules and modules[one] == modules.get(other)


def _ran(facts: TraceIndex, cut: _Cut, constant: ast.Call, modules: dict[str, dict[str, int]]) -> bool:
    """Returns whether a call ran: it is the only one in the cut code that calls the module, or its line has a site."""
    same = modules[plain_name(constant.func) or ""]
    others = [call for call in cut.calls if call is not constant and modules.get(plain_name(call.func) or "") == same]
    file = facts.trace.sites[cut.site].span.file
    return not others or any((s.span.file, s.span.line) == (file, constant.lineno) for s in facts.trace.sites)


def _calls(node: ast.AST) -> list[ast.Call]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Call)]


def _own_calls(scope: ast.AST) -> list[ast.Call]:
    """Returns the calls in the code of a function, without those in functions and classes that it defines."""
    found, waiting = [], list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _INNER):
            found += [node] if isinstance(node, ast.Call) else []
            waiting += ast.iter_child_nodes(node)
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def modules_in(facts: TraceIndex, function: str, trained: set[int]) -> dict[str, dict[str, int]]:
    """Maps the names of the modules that a function can reach to their trained parameters, by the rest of the path."""
    paths = [(b.name, b.tensor) for b in facts.trace.end.bindings if b.scope == "<module>"]
    for reached in facts.trace.inspection.reached:
        if reached.scope in (function, "<module>"):
            paths += zip(reached.names, reached.tensors, strict=True)
    modules: dict[str, dict[str, int]] = defaultdict(dict)
    for path, tensor in paths:
        if tensor in trained:
            for at in (at for at, mark in enumerate(path) if mark in ".[" and at):
                modules[path[:at]][path[at:]] = tensor
    return modules


def _cuts(facts: TraceIndex) -> Iterator[_Cut]:
    """Yields the `no_grad` blocks and the calls of `detach()`, each as it ran last."""
    blocks: dict[int, tuple[int, int]] = {}
    detached: dict[int, Call] = {}
    entered: list[GradMode] = []
    for event in facts.events:
        if isinstance(event, GradMode) and event.entering:
            entered.append(event)
        elif isinstance(event, GradMode) and entered:
            begin = entered.pop()
            if begin.mode != "grad" and not begin.decorator:
                blocks[begin.site] = begin.index, event.index
        elif isinstance(event, Call) and event.op in _DETACHING and event.mode == "grad" and not event.within:
            detached[event.site] = event
    for site, (first, last) in blocks.items():
        statement = statement_at(facts, *_line(facts, site))
        if isinstance(statement, ast.With):
            ran = (facts.call(index) for index in range(first, last))
            yield _Cut(site, tuple(_calls(statement)), tuple(call for call in ran if call is not None))
    for site, call in detached.items():
        node = facts.names.syntax.node(facts.trace.sites[site].span)
        if isinstance(node, ast.Call | ast.Attribute):
            yield _Cut(site, tuple(_calls(node)), (call,))


def _line(facts: TraceIndex, site: int) -> tuple[str, int]:
    span = facts.trace.sites[site].span
    return span.file, span.line


def _is_target(facts: TraceIndex, cut: _Cut, parameters: set[int]) -> bool:
    """Returns whether a loss was computed from what the module gave in the cut code, and trained the same module."""
    ran = {call.index for call in cut.events}
    last = max(ran, default=0)
    for backward in [b for b in facts.backwards if b.index > last and not b.failed][:_MAX_PASSES]:
        if not parameters & {change.tensor for change in backward.gradients}:
            continue
        reached = calls_reached_by(facts, backward)
        above = [call for root in backward.roots for _, call in ancestry(facts, root.tensor, backward.index)]
        inside = [call for call in above if call.index in ran and call.index not in reached.calls]
        results = {access.tensor for call in inside for access in call.outputs}
        if not inside or any(change.tensor in results for each in facts.backwards for change in each.gradients):
            return False  # a pass gives the result a gradient of its own, as gradient caching does
        makers = [*inside, *_makers(facts, cut.events[0])] if len(cut.events) == 1 else inside
        cut_off = any(_reads(call, parameters) for call in makers if call.index not in reached.calls)
        in_graph = any(_reads(call, parameters) for call in above if call.index in reached.calls)
        return reached.complete and cut_off and in_graph
    return False


def _makers(facts: TraceIndex, call: Call) -> list[Call]:
    """Returns the calls that made what a call such as `detach()` reads."""
    return [made for access in call.inputs[:1] for _, made in ancestry(facts, access.tensor, call.index)]


def _reads(call: Call, parameters: set[int]) -> bool:
    return any(access.tensor in parameters for access in call.inputs)
