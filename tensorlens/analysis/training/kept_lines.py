"""Finds the expression of a program that puts the result of a call into a container, as `losses.append(loss)` does.

The search follows the names of the result: to the callers of the function that returns it, and into functions of the
program that it is given to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.code_around import function_around, is_inside, scope_around, statement_around
from tensorlens.analysis.naming.assignments import container_stores, items_of
from tensorlens.analysis.naming.places import callers
from tensorlens.analysis.naming.syntax import called_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call, Span

MAX_DEPTH = 4  # functions that a value is returned through, or given to
MAX_CALLERS = 16
_WITHOUT_GRAPH = ("item", "detach", "tolist", "numpy", "float", "int", "len", "str")
_UNNAMED = ("forward", "__call__", "__getitem__")  # methods that a program calls without their name
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Store:
    """An expression that puts a value into a container."""

    span: Span
    given: Span  # the call that gives the value to the function with `span`; `span` itself if there is none
    value: Span | None  # at `given`; None if it may be more than the tensor, as a tuple of results


@dataclass(frozen=True, slots=True)
class _Value:
    """An expression of the program, and the names that its value is assigned to."""

    made: Span
    names: tuple[str, ...]
    is_result: bool = True  # and not a tuple or an object that has the result

    def is_in(self, facts: TraceIndex, node: ast.expr) -> bool:
        """Returns whether an expression is the value: it names it, or makes it and uses it for nothing else."""
        if plain_name(node) in self.names:
            return node.lineno >= self.made.line
        return is_inside(self.made, facts.span_of(node, self.made.file)) and called_name(node) not in _WITHOUT_GRAPH

    def whole(self, facts: TraceIndex, node: ast.expr) -> Span | None:
        """Returns where an expression is, if its value is the result itself."""
        span = facts.span_of(node, self.made.file)
        return span if self.is_result and (span == self.made or plain_name(node) in self.names) else None


def store_of(facts: TraceIndex, call: Call, name: str) -> Store | None:
    """Finds the only expression that puts the result of a call, which has a name, into a container."""
    site = facts.trace.sites[call.site]
    value = _Value(site.span, (*site.targets, name))
    found = set(_stores(facts, call, value, MAX_DEPTH))
    if len(found) > 1:
        line = caller_lines(facts.trace).line(call)
        outer = None if line is None else _at_caller(facts, value, line)
        found = set() if outer is None else set(_stores(facts, call, outer, MAX_DEPTH - 1))
    return found.pop() if len(found) == 1 else None


def _stores(facts: TraceIndex, call: Call, value: _Value, depth: int) -> Iterator[Store]:
    """Yields the first store of a value in its function, else those in the callers to which the function returns it."""
    store = _store_in(facts, value)
    if store is not None:
        yield store
    elif depth:
        for caller in _callers(facts, call, value.made):
            outer = _at_caller(facts, value, caller)
            if outer is not None:
                yield from _stores(facts, call, outer, depth - 1)


def _store_in(facts: TraceIndex, value: _Value) -> Store | None:
    """Finds the first expression, in the function around a value, that puts it into a container."""
    file, given = value.made.file, list[Store]()
    scope = scope_around(facts, file, value.made.line)
    for stored, _, values in container_stores(scope):
        kept = next((each for each in values if value.is_in(facts, each)), None)
        if kept is not None:
            inner = _of_function(facts, value, stored, MAX_DEPTH) if isinstance(stored, ast.Call) else None
            span = facts.span_of(stored, file)
            return Store(inner or span, span, value.whole(facts, kept))
    for node in ast.walk(scope):
        kept = _argument(facts, value, node)[1] if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and kept is not None:
            inner = _of_function(facts, value, node, MAX_DEPTH)
            given += [] if inner is None else [Store(inner, facts.span_of(node, file), value.whole(facts, kept))]
    return min(given, key=lambda store: (store.given.line, store.given.column), default=None)


def _argument(facts: TraceIndex, value: _Value, call: ast.Call) -> tuple[int | str | None, ast.expr | None]:
    """Finds the place or keyword by which a call gets a value, and the argument."""
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None, None
    given: list[tuple[int | str | None, ast.expr]] = [*enumerate(call.args)]
    given += [(each.arg, each.value) for each in call.keywords]
    return next(((place, each) for place, each in given if value.is_in(facts, each)), (None, None))


def _of_function(facts: TraceIndex, value: _Value, call: ast.Call, depth: int) -> Span | None:
    """Finds the only expression of a called function that puts the argument with a value into a container that
    outlives the call."""
    place, found = _argument(facts, value, call)[0], set[Span]()
    for file, function in _functions(facts, called_name(call)) if place is not None else ():
        parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        if isinstance(call.func, ast.Attribute) and parameters[:1] == ["self"]:
            del parameters[0]
        names = parameters[place : place + 1] if isinstance(place, int) else [place] if place else []
        found.update(span for name in names for span in _of_parameter(facts, file, function, name, depth))
    return found.pop() if len(found) == 1 else None


def _of_parameter(facts: TraceIndex, file: str, function: _Function, name: str, depth: int) -> Iterator[Span]:
    own = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if name in own:
        return  # perhaps the values without their graph
    value = _Value(facts.span_of(function, file), (name,))
    for node, container, values in container_stores(function):
        root = next((n.id for n in ast.walk(container) if isinstance(n, ast.Name)), "")
        if root not in own and any(plain_name(each) == name for each in values):
            yield facts.span_of(node, file)
            return
    for call in ast.walk(function) if depth else ():
        if isinstance(call, ast.Call) and called_name(call) != function.name:
            inner = _of_function(facts, value, call, depth - 1)
            yield from () if inner is None else (inner,)


def _functions(facts: TraceIndex, name: str) -> Iterator[tuple[str, _Function]]:
    for file in facts.trace.sources if name else ():
        for node in ast.walk(facts.tree(file)):
            if isinstance(node, _Function) and node.name == name:
                yield file, node


def _callers(facts: TraceIndex, call: Call, made: Span) -> list[Span]:
    """Lists the expressions that call the function around a value."""
    function = function_around(facts, made.file, made.line)
    if function is None:
        return []
    if function.name in _UNNAMED:
        chain = [facts.trace.sites[number].span for number in (call.site, *callers(facts.trace, call.site))]
        around = facts.span_of(function, made.file)
        out = (late for early, late in pairwise(chain) if is_inside(early, around) and not is_inside(late, around))
        return list(out)[:1]
    found = [
        facts.span_of(node, file)
        for file in facts.trace.sources
        for node in ast.walk(facts.tree(file))
        if isinstance(node, ast.Call) and called_name(node) == function.name
    ]
    return found if len(found) <= MAX_CALLERS else []


def _at_caller(facts: TraceIndex, value: _Value, caller: Span) -> _Value | None:
    """Returns a value that a function returns as its caller has it; None if no `return` of the function has it."""
    function = function_around(facts, value.made.file, value.made.line)
    for node in ast.walk(function) if function is not None else ():
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for place, part in enumerate(parts):
            if any(value.is_in(facts, each) for each in items_of([part])):
                whole = value.whole(facts, part) is not None
                return _at_call(facts, caller, place if len(parts) > 1 else None, len(parts), whole)
    return None


def _at_call(facts: TraceIndex, caller: Span, place: int | None, count: int, whole: bool) -> _Value:
    """Returns the value of a call by the names that its statement assigns it to; the item at a place, if it has one."""
    statement = statement_around(facts, caller)
    if not isinstance(statement, ast.Assign) or facts.span_of(statement.value, caller.file) != caller:
        return _Value(caller, (), whole and place is None)
    target = statement.targets[0]
    if place is not None and isinstance(target, ast.Tuple | ast.List) and len(target.elts) == count:
        target, place = target.elts[place], None
    name = plain_name(target)
    return _Value(caller, () if name is None else (name,), whole and place is None)
