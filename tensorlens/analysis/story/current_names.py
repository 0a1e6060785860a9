"""Decides whether a name still refers to a tensor at an event, or has been given to another one."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.naming.places import Scope, callers, place_of
from tensorlens.records.model import Span, Trace
from tensorlens.records.source import tree_of

_ROOT = re.compile(r"[^.\[]*")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class CurrentNames:
    """Knows when lines stored tensors under names, and which other lines bind these names."""

    def __init__(self, trace: Trace, names: Names) -> None:
        self._trace = trace
        self.names = names
        self._stored: dict[tuple[Scope, str], list[tuple[int, int]]] = defaultdict(list)  # -> (event, tensor), in order
        self._sites = {event.index: event.site for event in trace.events}
        scopes = cache(lambda site: ("", "") if site is None else place_of(trace.sites[site])[:2])
        for tensor, named in names.stores.items():
            for index, name in named.items():
                self._stored[scopes(self._sites.get(index)), name].append((index, tensor))
        for stores in self._stored.values():
            stores.sort()
        self._stored_tensors = cache(self._tensors_stored)
        self._store_lines = cache(self._lines_that_store)
        self._bindings = cache(_bindings)

    def name(self, tensor: int, at: int) -> str | None:
        """Returns a name that refers to a tensor at event `at`, as far as the trace shows; None if there is none."""
        known = self.names.script_name(tensor, at)
        stored = self.names.stores.get(tensor, {}).values()
        candidates = [*([known] if known else []), *self.names.all_names(tensor), *stored]
        return next((name for name in candidates if self.refers(name, tensor, at)), None)

    def described(self, tensor: int, at: int) -> str:
        """Returns a name that refers to a tensor at event `at`; if none does, another one and the line that made the
        tensor."""
        name = self.name(tensor, at)
        if name is not None or not self.names.is_named(tensor):
            return name or self.names.display_name(tensor, at)
        line = self._line(self._trace.tensors[tensor].created_by)
        return self.names.display_name(tensor, at) + (f" (of line {line})" if line else "")

    def refers(self, name: str, tensor: int, at: int) -> bool:
        """Returns False if the root of `name` referred to another value at event `at`; else True."""
        if name.endswith(".grad"):
            return True  # the variable is another tensor: its owner
        root = _ROOT.match(name)[0]  # type: ignore[index]
        scope, line = self._scope(at), self._line(at)
        bindings = self._bindings(self._trace.sources.get(scope[0], "")).get((scope[1], root), [])
        if name != root and self._is_replaced(tensor, name, scope, line, bindings):
            return False
        stores = self._stored.get((scope, root), [])
        last = bisect_right(stores, (at, len(self._trace.tensors)))
        if not last:
            return not bindings or any(binding.may_have_run(0, line) for binding in bindings)
        index = stores[last - 1][0]
        since, recorded = self._line(index), self._store_lines((scope, root))
        others = [b.value for b in bindings if b.may_have_run(since, line) and b.line not in recorded]
        made = self._made(tensor)
        if made is not None:
            others = [
                b.value for b in bindings if b.may_have_run(since, line) and b.line not in recorded and b.fits(made)
            ]
        if root == name and _is_in((index, tensor), stores):  # `for row in table` stores several at one event
            return all(value == root or (value and self._may_refer(value, tensor, at)) for value in others)
        later = name in self.names.all_names(tensor)  # some line gave it that name
        return any(later if value in (None, root) else self._may_refer(value or "", tensor, at) for value in others)

    def _is_replaced(self, tensor: int, name: str, scope: Scope, line: int, bindings: list[_Binding]) -> bool:
        """Returns whether the object that the path begins with was made again after the tensor."""
        created = self._trace.tensors[tensor].created_by
        event = None if created is None else self._trace.event(created)
        if name in self.names.all_names(tensor) or event is None or event.site is None:
            return False
        above = (event.site, *callers(self._trace, event.site))
        places = (place_of(self._trace.sites[site]) for site in above)
        made = next((place[2] for place in places if place[:2] == scope), None)
        return made is not None and any(binding.may_have_run(made, line) for binding in bindings)

    def _may_refer(self, value: str, tensor: int, at: int) -> bool:
        """Returns whether the variable `value`, which a line gave another name, may have referred to the tensor."""
        scope = self._scope(at)
        return (scope, value) not in self._stored or tensor in self._stored_tensors((scope, value))

    def _tensors_stored(self, key: tuple[Scope, str]) -> set[int]:
        return {tensor for _, tensor in self._stored[key]}

    def _lines_that_store(self, key: tuple[Scope, str]) -> set[int]:
        sites = {self._sites.get(at) for at, _ in self._stored[key]}
        return {0 if site is None else self._trace.sites[site].span.line for site in sites}

    def _made(self, tensor: int) -> Span | None:
        """Returns the expression that made a tensor."""
        created = self._trace.tensors[tensor].created_by
        event = None if created is None else self._trace.event(created)
        return None if event is None or event.site is None else self._trace.sites[event.site].span

    def _scope(self, index: int) -> Scope:
        site = self._sites.get(index)
        return ("", "") if site is None else place_of(self._trace.sites[site])[:2]

    def _line(self, index: int | None) -> int:
        site = None if index is None else self._sites.get(index)
        return 0 if site is None else self._trace.sites[site].span.line


def _is_in(pair: tuple[int, int], ordered: list[tuple[int, int]]) -> bool:
    at = bisect_left(ordered, pair)
    return at < len(ordered) and ordered[at] == pair


@dataclass(frozen=True, slots=True)
class _Binding:
    """A statement that binds a variable. `value` is the variable that it is bound to; None for any other value."""

    function: str  # "<module>", "Net.forward"
    line: int
    value: str | None
    span: Span | None  # of the value
    loops: tuple[tuple[int, int], ...]  # the lines of the loops around it

    def fits(self, made: Span) -> bool:
        """Returns False if the expression `made` is part of the same statement, but not of this value."""
        if self.span is None or not self.line <= made.line <= self.span.end_line:
            return True
        begin, end = (self.span.line, self.span.column), (self.span.end_line, self.span.end_column)
        return begin <= (made.line, made.column) and (made.end_line, made.end_column) <= end

    def may_have_run(self, since: int, line: int) -> bool:
        """Returns whether it may have run after line `since`, before the program is at `line`."""
        if any(first <= line <= last for first, last in self.loops):
            return self.line != since
        return since < self.line <= line


def _bindings(text: str) -> dict[tuple[str, str], list[_Binding]]:
    """Finds the statements of a file that bind a variable, by function and variable."""
    found: dict[tuple[str, str], list[_Binding]] = defaultdict(list)

    def walk(node: ast.AST, function: str, loops: tuple[tuple[int, int], ...]) -> None:
        for name, value in _bound_by(node):
            variable = value.id if isinstance(value, ast.Name) else None
            span = None if value is None else span_of(value, text, "")
            found[function, name].append(_Binding(function, getattr(node, "lineno", 0), variable, span, loops))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = node.name if function == "<module>" else f"{function}.{node.name}"
            is_class = isinstance(node, ast.ClassDef)
            function, loops = inner, ()
            for child in ast.iter_child_nodes(node):
                walk(child, function if is_class else function + ".<locals>", loops)
            return
        if isinstance(node, _LOOPS):
            loops = (*loops, (node.lineno, node.end_lineno or node.lineno))
        for child in ast.iter_child_nodes(node):
            walk(child, function, loops)

    walk(tree_of(text) or ast.Module([], []), "<module>", ())
    return {(function.removesuffix(".<locals>"), name): bound for (function, name), bound in found.items()}


def _bound_by(node: ast.AST) -> list[tuple[str, ast.expr | None]]:
    """Returns the variables that a statement or an argument binds, each with its value if that is an expression."""
    targets: list[ast.expr] = []
    value: ast.expr | None = None
    if isinstance(node, ast.arg):
        return [(node.arg, None)]
    if isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    elif isinstance(node, ast.For | ast.AsyncFor):
        targets = [node.target]
    elif isinstance(node, ast.With | ast.AsyncWith):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        targets, value = [node.target], node.value
    bound: list[tuple[str, ast.expr | None]] = []
    for target in targets:
        if isinstance(target, ast.Name):
            bound.append((target.id, value))
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = zip(target.elts, value.elts, strict=True)
            bound += [(part.id, item) for part, item in pairs if isinstance(part, ast.Name)]
        elif isinstance(target, ast.Tuple | ast.List):
            bound += [(part.id, None) for part in ast.walk(target) if isinstance(part, ast.Name)]
    return bound
