"""Finds the places of the program that write a learning rate into a parameter group, and which group that is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

_GROUPS, _RATE = "param_groups", "lr"
_MOST = 4  # names that are followed for one group
_IN_PLACE = frozenset(("fill_", "copy_", "mul_", "div_", "sub_", "add_"))  # of a rate that is a tensor
_OTHERS = frozenset("rest other others unused ignored".split())  # words of names of groups that are left
_A_GROUP = frozenset("g pg group param params parameter first opt optim optimizer".split())
"""Words of a name that says of a group no more than that it is one."""


@dataclass(frozen=True, slots=True)
class WrittenRate:
    """A place that writes a learning rate into a group."""

    file: str
    node: ast.expr | ast.AugAssign  # `group["lr"]` where it is set, or `group.update(lr=rate)`
    group: ast.expr
    span: Span


def written_rates(facts: TraceIndex) -> Iterator[WrittenRate]:
    """Yields these places. An item "lr" may be set in any object, a method such as `update()` sets that of a group."""
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_rate(node.slice):
                yield WrittenRate(file, node, node.value, facts.span_of(node, file))
            elif isinstance(node, ast.Call | ast.AugAssign):
                group = _changed_by(node)
                if group is not None and is_from_groups(facts, file, group):
                    yield WrittenRate(file, node, group, facts.span_of(node, file))


def _changed_by(node: ast.Call | ast.AugAssign) -> ast.expr | None:
    """Returns the group that `group.update(lr=rate)`, `group |= {"lr": rate}` and the like change."""
    if isinstance(node, ast.AugAssign):
        return node.target if isinstance(node.op, ast.BitOr) and _has_rate(node.value) else None
    called, name, keys = node.func, last_name(node.func), node.args
    if name == "setitem":
        return keys[0] if len(keys) == 3 and _is_rate(keys[1]) else None
    if not isinstance(called, ast.Attribute):
        return None
    held = called.value
    if name in _IN_PLACE:
        return held.value if isinstance(held, ast.Subscript) and _is_rate(held.slice) else None
    if name == "__setitem__":
        return held if keys and _is_rate(keys[0]) else None
    is_given = any(each.arg == _RATE for each in node.keywords) or any(map(_has_rate, keys[:1]))
    return held if name == "update" and is_given else None


def _is_rate(key: ast.expr) -> bool:
    return isinstance(key, ast.Constant) and key.value == _RATE


def _has_rate(node: ast.expr) -> bool:
    """Returns whether an expression is a dict with a rate."""
    if isinstance(node, ast.Call) and last_name(node.func) == "dict":
        return any(each.arg == _RATE for each in node.keywords)
    return isinstance(node, ast.Dict) and any(key is not None and _is_rate(key) for key in node.keys)


def is_from_groups(facts: TraceIndex, file: str, group: ast.expr, seen: int = 0) -> bool:
    """Returns whether an expression is a group by its text, by the line that sets its name, by that name itself, or by
    what the only call of its function gives for it."""
    if _GROUPS in ast.unparse(group):
        return True
    if any(_GROUPS in ast.unparse(value) for value, _ in _bindings(facts, file, group)):
        return True
    if "group" in words_of_last(ast.unparse(group)):
        return True
    given = _given(facts, file, group) if isinstance(group, ast.Name) and seen < _MOST else None
    return given is not None and is_from_groups(facts, *given, seen + 1)


def place_of_group(facts: TraceIndex, file: str, group: ast.expr, seen: int = 0) -> int | None:
    """Returns the number of a group in the list of its optimizer, as of `optimizer.param_groups[0]`, where the source
    says it without a word about the parameters of the group."""
    if isinstance(group, ast.Subscript):
        return _number(group.slice) if _is_list(facts, file, group.value) else None
    if isinstance(group, ast.Call):
        inner = group.args[0] if last_name(group.func) == "next" and len(group.args) == 1 else None
        is_first = isinstance(inner, ast.Call) and last_name(inner.func) == "iter" and len(inner.args) == 1
        return 0 if is_first and _is_list(facts, file, inner.args[0]) else None  # type: ignore[union-attr]
    words = words_of_last(ast.unparse(group)) if isinstance(group, ast.Name | ast.Attribute) else []
    if not words or not _A_GROUP.issuperset(words) or seen >= _MOST:
        return None
    bindings = list(_bindings(facts, file, group))
    if bindings:
        return _bound_place(facts, file, *bindings[0], seen) if len(bindings) == 1 else None
    given = _given(facts, file, group) if isinstance(group, ast.Name) else None
    return None if given is None else place_of_group(facts, *given, seen + 1)


def _bound_place(facts: TraceIndex, file: str, value: ast.expr, target: ast.AST, seen: int) -> int | None:
    if isinstance(target, ast.Name | ast.Attribute):
        return place_of_group(facts, file, value, seen + 1)
    if isinstance(target, ast.For):
        return 0 if _ends_at_once(target) and _is_list(facts, file, value) else None
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    others = [each.value if isinstance(each, ast.Starred) else each for each in parts[1:]]
    if any(last_name(each) == "_" for each in parts[1:]):
        return None  # `group, _ = ...`, but not `group, *_`, says how many there are
    is_first = bool(parts) and all(_OTHERS.issuperset(words_of_last(last_name(each))) for each in others)
    return 0 if is_first and _is_list(facts, file, value) else None


def _ends_at_once(loop: ast.For) -> bool:
    """Returns whether a loop ends in its first round, whatever the group is."""
    choices = (ast.If, ast.Continue, ast.Try, ast.While, ast.Match)
    is_plain = not any(isinstance(node, choices) for each in loop.body for node in ast.walk(each))
    return is_plain and isinstance(loop.body[-1], ast.Break | ast.Return)


def _is_list(facts: TraceIndex, file: str, node: ast.expr) -> bool:
    """Returns whether an expression is the list of an optimizer's groups, and no copy of a `state_dict()`."""
    if last_name(node).endswith(_GROUPS):
        return True
    if isinstance(node, ast.Call) and last_name(node.func) in ("list", "tuple", "iter") and len(node.args) == 1:
        return _is_list(facts, file, node.args[0])
    values = [value for value, _ in _bindings(facts, file, node)]
    return len(values) == 1 and isinstance(values[0], ast.Attribute) and values[0].attr == _GROUPS


def _bindings(facts: TraceIndex, file: str, node: ast.expr) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yields the values of a name in its function, or at the top level, and of an attribute in the whole program, each
    with the target that gets it, or the loop that does."""
    if isinstance(node, ast.Name):
        around: list[ast.AST] = [scope_around(facts, file, node.lineno)]
    else:
        around = [tree for _, tree in facts.trees()] if isinstance(node, ast.Attribute) else []
    name = last_name(node)
    for each in (each for scope in around for each in ast.walk(scope)):
        if isinstance(each, ast.Assign):
            yield from ((each.value, target) for target in each.targets if _binds(target, name))
        elif isinstance(each, ast.AnnAssign | ast.NamedExpr) and each.value is not None and _binds(each.target, name):
            yield each.value, each.target
        elif isinstance(each, ast.For | ast.comprehension) and _binds(each.target, name):
            yield each.iter, each


def _binds(target: ast.expr, name: str) -> bool:
    names = (each for each in ast.walk(target) if isinstance(each, ast.Name | ast.Attribute))
    return any(last_name(each) == name and isinstance(each.ctx, ast.Store) for each in names)


def _given(facts: TraceIndex, file: str, name: ast.Name) -> tuple[str, ast.expr] | None:
    """Returns what the only call of a function gives for an argument, with the file of the call."""
    function = scope_around(facts, file, name.lineno)
    if isinstance(function, ast.Module):
        return None
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args) if each.arg not in ("self", "cls")]
    calls = [
        (each, node)
        for each, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and last_name(node.func) == function.name
    ]
    if len(calls) != 1 or name.id not in names:
        return None
    place, call = calls[0]
    named = [each.value for each in call.keywords if each.arg == name.id]
    found = [*named, *call.args[names.index(name.id) :][:1]]
    return (place, found[0]) if found else None


def _number(index: ast.expr) -> int | None:
    value = ast.literal_eval(index) if isinstance(index, ast.Constant | ast.UnaryOp) else None
    return value if isinstance(value, int) else None
