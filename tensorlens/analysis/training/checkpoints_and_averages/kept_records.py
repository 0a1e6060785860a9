"""Finds values of a loop that are the better of what is kept so far and of a record with a module.

As in `best = best.challenge(loss, net)` with `return replace(self, loss=loss, net=net)` below an `if` of the method, in
`best = Best(loss, net) if loss < best.loss else best` and in `best = min(best, (loss, net), key=itemgetter(0))`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.syntax import called_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.best_so_far import compares_with, has_computed

_BETTER = ("min", "max")
_LEAVING = ast.Return | ast.Break | ast.Raise
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A statement of a loop that keeps a record, and the code that makes the record of a module."""

    statement: ast.Assign
    file: str
    loop: ast.For | ast.While
    kept: tuple[str, ...]  # the names that the statement sets
    module: str  # in the function around the statement
    made: ast.AST  # with the record: a `return`, or the statement itself


def kept_records(facts: TraceIndex) -> Iterator[KeptRecord]:
    """Yields these statements. A loop that asks for what is kept may end right after it."""
    for file, tree in facts.trees():
        functions: dict[str, list[_Function]] = defaultdict(list)
        for node in ast.walk(tree):
            if isinstance(node, _Function):
                functions[node.name].append(node)
        for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)):
            for statement in (node for node in ast.walk(loop) if isinstance(node, ast.Assign)):
                kept = _names(statement)
                if not kept or _asks_for(loop, set(kept)):
                    continue
                for part, made in _records(facts, file, statement, functions, kept):
                    name = plain_name(part)
                    if name is not None:
                        yield KeptRecord(statement, file, loop, kept, name, made)


def _names(statement: ast.Assign) -> tuple[str, ...]:
    target = statement.targets[0]
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return tuple(name for part in parts if (name := plain_name(part)) is not None)


def _asks_for(loop: ast.For | ast.While, kept: set[str]) -> bool:
    """Returns whether a test that may end a loop reads what is kept."""
    tests = [loop.test] if isinstance(loop, ast.While) else []
    for node in (node for node in ast.walk(loop) if isinstance(node, ast.If)):
        if any(isinstance(each, _LEAVING) for inner in (*node.body, *node.orelse) for each in ast.walk(inner)):
            tests.append(node.test)
    names = {plain_name(each) for test in tests for each in ast.walk(test) if isinstance(each, ast.expr)}
    return bool(names & kept)


def _records(
    facts: TraceIndex, file: str, statement: ast.Assign, functions: dict[str, list[_Function]], kept: tuple[str, ...]
) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yields the names in records that may be of modules, as the statement has them, each with the code."""
    value = statement.value
    if isinstance(value, ast.IfExp) and compares_with(facts, file, value.test, value.body):
        yield from ((part, statement) for part in _parts(value.body))
    elif not isinstance(value, ast.Call):
        return
    elif called_name(value) in _BETTER:
        one = value.args[0] if len(value.args) == 1 else None
        given = one.elts if isinstance(one, ast.Tuple | ast.List) else value.args
        if any(plain_name(each) in kept for each in given):
            for parts in (list(_parts(each)) for each in given):
                others = [[other for other in parts if other is not part] for part in parts]
                chosen = (part for part, rest in zip(parts, others, strict=True) if has_computed(facts, file, rest))
                yield from ((part, statement) for part in chosen)
    elif len(functions[called_name(value)]) == 1:
        function = functions[called_name(value)][0]
        arguments = _arguments(function, value)
        for record, made in _returned(facts, file, function):
            yield from ((arguments[n], made) for part in _parts(record) if (n := plain_name(part)) in arguments)


def _returned(facts: TraceIndex, file: str, function: _Function) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yields what a function returns if a number that the value contains is better than another."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.IfExp):
            if compares_with(facts, file, node.value.test, node.value.body):
                yield node.value.body, node
        elif isinstance(node, ast.If):
            for each in node.body:
                value = each.value if isinstance(each, ast.Return) else None
                if value is not None and len(node.body) == 1 and compares_with(facts, file, node.test, value):
                    yield value, each


def _arguments(function: _Function, call: ast.Call) -> dict[str | None, ast.expr]:
    """Maps the names of a function's parameters to what a call gives for them."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    is_method = isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"])
    found: dict[str | None, ast.expr] = dict(zip(names[is_method:], call.args, strict=False))
    return found | {each.arg: each.value for each in call.keywords if each.arg is not None}


def _parts(record: ast.expr) -> Iterator[ast.expr]:
    """Yields the names that a record is made of; none that occurs twice: the other may be in the call of a copy."""
    if isinstance(record, ast.Call):
        parts = [*record.args, *(each.value for each in record.keywords)]
    elif isinstance(record, ast.Tuple | ast.List):
        parts = record.elts
    else:
        parts = [each for each in record.values if each is not None] if isinstance(record, ast.Dict) else []
    names = [plain_name(each) for each in ast.walk(record) if isinstance(each, ast.Name | ast.Attribute)]
    for part in parts:
        if isinstance(part, ast.Name | ast.Attribute) and names.count(plain_name(part)) == 1:
            yield part
