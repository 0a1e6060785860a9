"""Finds out from the source whether a plain value, such as the number from `item()`, can be part of an expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.records.model import Span, Trace
from tensorlens.records.source import tree_of

_Name = tuple[str, str]  # (file and function; "" for attributes, functions and the value that is followed; name)
_SOURCE: _Name = ("", "")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class _Step:
    """An expression of a function, and the names that can get a part of its value."""

    file: str
    scope: str
    value: ast.expr
    given: tuple[_Name, ...]


class PlainFlow:
    """Follows plain values by name: through assignments, arguments, results, attributes and containers.

    Objects with the same attributes count as one. So it may find a way that no value takes, but misses none that a name
    takes.
    """

    def __init__(self, trace: Trace) -> None:
        self._sources = trace.sources
        self._parameters: dict[str, list[tuple[str, ast.arguments]]] = {}
        trees = [(file, tree) for file, text in trace.sources.items() if (tree := tree_of(text)) is not None]
        for file, tree in trees:
            for node in ast.walk(tree):
                if isinstance(node, _FUNCTIONS):
                    self._parameters.setdefault(node.name, []).append((f"{file}:{node.lineno}", node.args))
        self._steps = [step for file, tree in trees for step in self._steps_of(file, f"{file}:0", "", tree)]
        self._known: dict[Span, frozenset[_Name]] = {}

    def leads(self, source: Span, target: Span) -> bool:
        """Returns whether the value of the expression at `source` can be part of that at `target`."""
        reached = self._reached(source)
        for step in self._steps:
            if step.file == target.file and step.value.lineno <= target.line <= (step.value.end_lineno or 0):
                for part in ast.walk(step.value):
                    if isinstance(part, ast.expr) and span_of(part, self._sources[step.file], step.file) == target:
                        if not self._read(part, step, source).isdisjoint(reached):
                            return True
        return False

    def _reached(self, source: Span) -> frozenset[_Name]:
        if source not in self._known:
            reached, size = {_SOURCE}, 0
            while size != len(reached):
                size = len(reached)
                for step in self._steps:
                    if not reached.issuperset(step.given) and not self._read(step.value, step, source).isdisjoint(
                        reached
                    ):
                        reached.update(step.given)
            self._known[source] = frozenset(reached)
        return self._known[source]

    def _read(self, value: ast.expr, step: _Step, source: Span) -> set[_Name]:
        read = set[_Name]()
        for part in ast.walk(value):
            if isinstance(part, ast.Name):
                read |= {(step.scope, part.id), (f"{step.file}:0", part.id), ("", part.id)}
            elif isinstance(part, ast.Attribute):
                read.add(("", part.attr))
            if isinstance(part, ast.expr) and step.file == source.file and part.lineno == source.line:
                if span_of(part, self._sources[step.file], step.file) == source:
                    read.add(_SOURCE)
        return read

    def _steps_of(self, file: str, scope: str, function: str, node: ast.AST) -> Iterator[_Step]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _FUNCTIONS):
                yield from self._steps_of(file, f"{file}:{child.lineno}", child.name, child)
                continue
            if isinstance(child, ast.stmt | ast.NamedExpr):
                for value, targets in _assigned(child):
                    given = tuple(name for target in targets for name in _names(target, scope))
                    yield _Step(file, scope, value, given)
                if isinstance(child, ast.Return) and child.value is not None:
                    yield _Step(file, scope, child.value, (("", function),))
            elif isinstance(child, ast.comprehension):
                yield _Step(file, scope, child.iter, tuple(_names(child.target, scope)))
            elif isinstance(child, ast.Yield) and child.value is not None:
                yield _Step(file, scope, child.value, (("", function),))
            if isinstance(child, ast.Call):
                yield from self._arguments(file, scope, child)
            yield from self._steps_of(file, scope, function, child)

    def _arguments(self, file: str, scope: str, call: ast.Call) -> Iterator[_Step]:
        """Yields the arguments of a call with the parameters that get them; of an unknown method, with its object."""
        name = last_name(call.func)
        known = self._parameters.get(name, [])
        for inner, parameters in known:
            taken = [each.arg for each in (*parameters.posonlyargs, *parameters.args) if each.arg != "self"]
            for argument, parameter in zip(call.args, taken, strict=False):
                yield _Step(file, scope, argument, ((inner, parameter),))
            for keyword in call.keywords:
                if keyword.arg is not None:
                    yield _Step(file, scope, keyword.value, ((inner, keyword.arg),))
        if not known and isinstance(call.func, ast.Attribute):
            given = tuple(_names(call.func.value, scope))
            for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
                yield _Step(file, scope, argument, given)


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yields the values that a statement assigns, with their targets; other expressions without targets."""
    if isinstance(node, ast.Assign):
        yield node.value, node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
        if node.value is not None:
            yield node.value, [node.target]
    elif isinstance(node, ast.For | ast.AsyncFor):
        yield node.iter, [node.target]
    elif isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            yield item.context_expr, [] if item.optional_vars is None else [item.optional_vars]
    elif isinstance(node, ast.Expr | ast.Return) and node.value is not None:
        yield node.value, []


def _names(target: ast.expr, scope: str) -> Iterator[_Name]:
    """Yields the names that an assignment to `target` gives a value, or to a part of it."""
    if isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _names(each, scope)
    elif isinstance(target, ast.Starred | ast.Subscript):
        yield from _names(target.value, scope)
    elif isinstance(target, ast.Attribute):
        yield "", target.attr
    elif isinstance(target, ast.Name):
        yield scope, target.id


@once_per_trace
def plain_flow(trace: Trace) -> PlainFlow:
    return PlainFlow(trace)
