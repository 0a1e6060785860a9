"""Finds out whether the program keeps what a line makes, as the best so far or as one of several."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import scope_around, statement_at, upwards
from tensorlens.analysis.naming.syntax import last_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.parameters.set_up_copies import is_set_up

_KEEPING = frozenset("append appendleft add put insert".split())
_STORING = frozenset("update setdefault setattr __setitem__".split())  # that is meant if it is below a comparison
_NAME = ast.Name | ast.Attribute
_DEPTH = 3  # functions that return it, one to the other


def is_kept(facts: TraceIndex, site: int) -> bool:
    """Returns whether a line puts the value into a list or dict, or keeps it below a comparison such as `loss < best`
    whose block does not use it; also whether a function returns it to such a line. A value that the program sets up in
    another way later, as `view.heat = 2`, is no snapshot."""
    is_better = False
    for _ in range(_DEPTH):
        span, caller = facts.trace.sites[site].span, facts.trace.sites[site].caller
        statement = statement_at(facts, span.file, span.line)
        if not isinstance(statement, ast.Return):
            if statement is None or not _keeps(facts, span.file, statement, is_better):
                return False
            return not is_set_up(facts, span.file, statement)
        is_better = is_better or _around(facts, span.file, statement, frozenset())
        if caller is None:
            return False
        site = caller
    return False


def _keeps(facts: TraceIndex, file: str, statement: ast.stmt, is_better: bool) -> bool:
    if isinstance(statement, ast.Expr):
        call = statement.value
        name = last_name(call.func) if isinstance(call, ast.Call) else ""
        is_stored = name in _STORING and (is_better or _around(facts, file, statement, frozenset()))
        return is_stored or (name in _KEEPING and isinstance(call.func, ast.Attribute))  # type: ignore[attr-defined]
    if not isinstance(statement, ast.Assign):
        return False
    if any(isinstance(target, ast.Subscript) for target in statement.targets):
        return True
    names = {plain_name(target) for target in _targets(statement)} - {None}
    is_choice = isinstance(statement.value, ast.IfExp) and _is_better(facts, file, statement.value.test)
    if (is_better or is_choice) and names & {plain_name(node) for node in _read(statement.value)}:
        return True  # the value before is the other choice
    return _around(facts, file, statement, frozenset(names))


def _around(facts: TraceIndex, file: str, statement: ast.stmt, names: frozenset[str | None]) -> bool:
    """Returns whether a statement is below a comparison, in the same function, whose block reads none of the names."""
    for around in list(upwards(facts, file, statement))[1:]:
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
        if isinstance(around, ast.If) and _is_better(facts, file, around.test):
            return not any(plain_name(node) in names for each in around.body for node in _read(each))
    return False


def _read(node: ast.AST) -> Iterator[_NAME]:
    yield from (each for each in ast.walk(node) if isinstance(each, _NAME) and isinstance(each.ctx, ast.Load))


def _targets(statement: ast.Assign) -> list[ast.expr]:
    """Returns what a statement assigns a copy to: of `best, model = loss, copy.copy(net)` the second target."""
    targets = []
    for target in statement.targets:
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = zip(target.elts, statement.value.elts, strict=False)
            targets += [name for name, value in pairs if any(isinstance(node, ast.Call) for node in ast.walk(value))]
        else:
            targets.append(target)
    return targets


def _is_better(facts: TraceIndex, file: str, test: ast.expr) -> bool:
    """Returns whether a condition compares two values, neither of which is written as a number."""
    compared = [
        node for each in (test, *_meant(facts, file, test)) for node in ast.walk(each) if isinstance(node, ast.Compare)
    ]
    return any(
        isinstance(node.ops[0], ast.Lt | ast.Gt | ast.LtE | ast.GtE)
        and not any(isinstance(each, ast.Constant) for each in (node.left, *node.comparators))
        for node in compared
    )


def _meant(facts: TraceIndex, file: str, test: ast.expr) -> list[ast.expr]:
    """Returns what the only line that sets a name sets it to, as `improved = loss < best`, or what the only function of
    a name returns."""
    if isinstance(test, ast.Name):
        scope = ast.walk(scope_around(facts, file, test.lineno))
        values = [
            node.value
            for node in scope
            if isinstance(node, ast.Assign) and test.id in {plain_name(target) for target in node.targets}
        ]
        return values if len(values) == 1 else []
    name = last_name(test.func) if isinstance(test, ast.Call) else ""
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree) if name)
    found = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name]
    returned = [node.value for node in ast.walk(found[0]) if isinstance(node, ast.Return)] if len(found) == 1 else []
    return [value for value in returned if value is not None]
