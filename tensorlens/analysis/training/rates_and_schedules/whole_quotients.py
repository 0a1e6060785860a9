"""Finds the quotient of whole numbers that a rate is a multiple of at the first steps, as `step // warmup` is 0 there.

It is followed through names, branches and functions of the program: `if step < warmup: return rate * (step // warmup)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tensorlens.analysis.code_around import upwards
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_arguments import argument_of

_ROUNDING = frozenset("int floor trunc round".split())
_KEEPING = frozenset("min minimum float int float64 float32 tensor".split())
_FIRST, _LATER, _MAYBE, _UNKNOWN = "first", "later", "maybe", "unknown"
_MAX_DEPTH = 8
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Value = tuple[ast.stmt, ast.expr]


@dataclass(frozen=True, slots=True)
class RateScope:
    """A function or file that computes a rate, and the texts of the numbers in it that change with the steps."""

    facts: TraceIndex
    file: str
    scope: ast.AST
    given: frozenset[str]
    deep: int = 0

    def deeper(self) -> RateScope:
        return replace(self, deep=self.deep + 1)


def texts_in(node: ast.expr) -> set[str]:
    return {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)}


def derived(scope: ast.AST, names: set[str]) -> set[str]:
    """Returns some names, and those that a function, or a script, computes by them."""
    for node in (each for each in ast.walk(scope) if isinstance(each, ast.Assign)):
        if texts_in(node.value) & names:
            names = names | {ast.unparse(each) for each in node.targets}
    return names


def is_chosen(value: ast.expr) -> bool:
    """Returns whether a rate is a written 0, or depends on a comparison: it may be 0 for another reason."""
    is_zero = isinstance(value, ast.Constant) and value.value == 0
    return is_zero or any(isinstance(each, ast.IfExp | ast.Compare | ast.BoolOp) for each in ast.walk(value))


def whole_quotient(place: RateScope, value: ast.expr) -> ast.expr | None:
    """Returns a quotient with a number above it that changes with the steps, so that a value is 0 with it."""
    if place.deep > _MAX_DEPTH:
        return None
    if _is_whole(place, value):
        return value
    if isinstance(value, ast.BinOp):
        return _of_operation(place, value)
    if isinstance(value, ast.IfExp):
        return _of_choice(place, value)
    if isinstance(value, ast.ListComp):
        return whole_quotient(place.deeper(), value.elt)
    if isinstance(value, ast.Call):
        return _of_call(place, value)
    return _of_first(place, _assigned(place, value.id)) if isinstance(value, ast.Name) else None


def returned_quotient(place: RateScope) -> ast.expr | None:
    """Returns that of what a function returns at the first steps."""
    returned = [(each, each.value) for each in ast.walk(place.scope) if isinstance(each, ast.Return) and each.value]
    return _of_first(place, sorted(returned, key=lambda pair: pair[0].lineno))


def is_from_start(place: RateScope, statement: ast.stmt) -> bool:
    """Returns whether a line runs at the first steps: it is in no branch, or in one for small numbers only."""
    return _reach(place, statement) == _FIRST


def _is_whole(place: RateScope, value: ast.expr) -> bool:
    """Returns whether a value is `step // size`, or `int(step / size)`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv):
        return bool(texts_in(value.left) & place.given)
    if not isinstance(value, ast.Call) or value.keywords:
        return False
    name, given = last_name(value.func), value.args
    if name == "floor_divide" and len(given) == 2:
        return bool(texts_in(given[0]) & place.given)
    inner = given[0] if name in _ROUNDING and len(given) == 1 else None
    is_share = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div)
    return is_share and bool(texts_in(inner.left) & place.given)  # type: ignore[union-attr]


def _of_operation(place: RateScope, value: ast.BinOp) -> ast.expr | None:
    sides = [value.left, value.right]
    if isinstance(value.op, ast.Div):
        return whole_quotient(place.deeper(), value.left)
    if not isinstance(value.op, ast.Mult | ast.Add):
        return None
    for one, other in (sides, sides[::-1]):
        is_sum = isinstance(value.op, ast.Add)  # the rate is 0, so the other summand is
        is_plain = isinstance(other, ast.Name | ast.Attribute | ast.Constant) and not texts_in(other) & place.given
        if (is_plain if is_sum else not is_chosen(other)) and (
            found := whole_quotient(place.deeper(), one)
        ) is not None:
            return found
    return None


def _of_choice(place: RateScope, value: ast.IfExp) -> ast.expr | None:
    side = _side(place, value.test)
    if side in (_FIRST, _LATER):
        return whole_quotient(place.deeper(), value.body if side == _FIRST else value.orelse)
    if side == _UNKNOWN:
        return None
    for one, other in ((value.body, value.orelse), (value.orelse, value.body)):
        is_steady = not texts_in(other) & place.given and not is_chosen(other)
        found = whole_quotient(place.deeper(), one) if is_steady else None
        if found is not None:
            return found  # the rate changes, so the other value is not chosen
    return None


def _of_call(place: RateScope, value: ast.Call) -> ast.expr | None:
    name, values = last_name(value.func), list[ast.expr]()
    if name in _KEEPING:
        values = value.args
    elif name == "clip":
        values = value.args[:1]
    elif name in ("max", "maximum"):
        values = [each for each in value.args if not isinstance(each, ast.Constant)]
        is_least = all(each.value == 0 for each in value.args if isinstance(each, ast.Constant))
        values = values if len(values) == 1 and is_least else []
    found = next((each for one in values if (each := whole_quotient(place.deeper(), one)) is not None), None)
    if found is not None or values:
        return found
    called = list(_called(place.facts, name))
    if len(called) != 1:
        return None
    file, function = called[0]
    arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    pairs = [(each, argument_of(place.facts, file, function, value, each)) for each in arguments]
    given = {each for each, argument in pairs if argument is not None and texts_in(argument) & place.given}
    held = {each for each in place.given if "." in each}
    return returned_quotient(replace(place.deeper(), file=file, scope=function,
                                     given=frozenset(derived(function, given | held))))  # fmt: skip


def _called(facts: TraceIndex, name: str) -> Iterator[tuple[str, _Function]]:
    for file, tree in facts.trees() if name else ():
        yield from ((file, each) for each in ast.walk(tree) if isinstance(each, _Function) and each.name == name)


def _assigned(place: RateScope, name: str) -> list[_Value]:
    """Returns what the lines set a name to, the last line first; [] if others set it, too."""
    found, stores = list[_Value](), 0
    for node in ast.walk(place.scope):
        stores += isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        is_set = isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == [name]
        is_changed = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult)
        if is_set or (is_changed and ast.unparse(node.target) == name):  # type: ignore[attr-defined]
            found.append((node, node.value))  # type: ignore[arg-type, attr-defined]
    return sorted(found, key=lambda pair: -pair[0].lineno) if stores == len(found) else []


def _of_first(place: RateScope, values: list[_Value]) -> ast.expr | None:
    """Returns the quotient of the first of some values whose line runs at the first steps.

    A line may run there or not. So each line before it has the quotient, or a value that does not change and is not 0.
    """
    found: ast.expr | None = None
    for statement, value in values:
        reach = _reach(place, statement)
        if reach == _LATER:
            continue
        own = None if reach == _UNKNOWN else whole_quotient(place.deeper(), value)
        if own is None and (reach != _MAYBE or is_chosen(value) or texts_in(value) & place.given):
            return found if reach == _FIRST and not is_chosen(value) and not texts_in(value) & place.given else None
        found = found or own
        if reach == _FIRST:
            break
    return found


def _reach(place: RateScope, statement: ast.stmt) -> str:
    """Returns whether a line runs at the first steps, only later, or perhaps, as the branches around it say."""
    inner, reach = statement, _FIRST
    for each in upwards(place.facts, place.file, statement):
        if each is place.scope or isinstance(each, _Function):
            break
        if isinstance(each, ast.If) and each is not statement:
            side = _side(place, each.test)
            if inner not in each.body:
                side = {_FIRST: _LATER, _LATER: _FIRST}.get(side, side)
            if side in (_LATER, _UNKNOWN):
                return side
            reach = side if side == _MAYBE else reach
        inner = each
    return reach


def _side(place: RateScope, test: ast.expr) -> str:
    """Returns whether a test is true at the first steps, only later, or independent of the step."""
    if not texts_in(test) & place.given:
        return _MAYBE
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        sides = {_side(place, each) for each in test.values} - {_MAYBE}
        return sides.pop() if len(sides) == 1 else _UNKNOWN
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return _UNKNOWN
    left, right = (bool(texts_in(each) & place.given) for each in (test.left, test.comparators[0]))
    is_less, is_more = isinstance(test.ops[0], ast.Lt | ast.LtE), isinstance(test.ops[0], ast.Gt | ast.GtE)
    if left == right or not (is_less or is_more):
        return _UNKNOWN
    return _FIRST if is_less == left else _LATER
