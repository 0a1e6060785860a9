"""Finds new priorities of drawn samples that a line writes to the first places of the table, not to those drawn.

The table may be an array of NumPy, so the draw and the write are read off the source; the trace gives their sizes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call

_PLACES = frozenset(("arange", "range", "slice"))
_SIZES = frozenset("len size numel".split())
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.Module


@dataclass(frozen=True, slots=True)
class PriorityByPosition:
    """The write, the draw by the values of the same table, and the places drawn, which the write does not read."""

    file: str
    write: ast.stmt
    draw_file: str
    draw: ast.Call
    places: str


@dataclass(frozen=True, slots=True)
class _Draw:
    file: str
    call: ast.Call
    tables: frozenset[str]  # names and attributes that the weights are computed from
    scope: _Scope


def priorities_by_position(facts: TraceIndex) -> Iterator[PriorityByPosition]:
    """Yields these writes, one for each table, in programs that nowhere write to the table by the places drawn."""
    draws = [draw for draw in _draws(facts) if _draws_a_part(facts, draw)]
    for file, tree in facts.trees() if draws else ():
        for statement in ast.walk(tree):
            target = _written(statement)
            if not isinstance(statement, ast.stmt) or target is None:
                continue
            table = last_name(target.value)
            for draw in draws:
                places = _unread_places(facts, file, statement, draw) if table in draw.tables else None
                if places is not None and not _writes_to(facts, table, places) and not _is_ordered_anew(facts, table):
                    written = parent_of(facts, file, target) if isinstance(statement, ast.For) else statement
                    write = written if isinstance(written, ast.stmt) else statement
                    yield PriorityByPosition(file, write, draw.file, draw.call, places)
                    break


def _draws(facts: TraceIndex) -> Iterator[_Draw]:
    """Yields the calls that draw places by weights."""
    for file, tree in facts.trees():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            is_torch = called_name(call) == "multinomial"
            weights = named.get("p") or named.get("weights") if called_name(call) in ("choice", "choices") else None
            weights = (call.args[0] if call.args else named.get("input")) if is_torch else weights
            if weights is not None:
                scope = _scope(facts, file, call)
                yield _Draw(file, call, frozenset(_sources(scope, weights)), scope)


def _draws_a_part(facts: TraceIndex, draw: _Draw) -> bool:
    """Returns whether a draw takes fewer places than there are: one of as many makes a new table, as of particles, to
    which their new weights belong by position. The number of rows of an array of NumPy is in the source."""
    drawn = list(_calls_in(facts, draw.file, draw.call))
    if called_name(draw.call) == "multinomial":
        pairs = [(call.outputs[0].tensor, call.inputs[0].tensor) for call in drawn if call.outputs and call.inputs]
        return any((0, *facts.tensor(one).shape)[-1] < (0, *facts.tensor(two).shape)[-1] for one, two in pairs)
    if len(draw.call.args) < 1 or isinstance(draw.scope, ast.Module):
        return False
    rows = number_of(facts, draw.file, draw.call.args[0])
    outputs = [access.tensor for call in _calls_in(facts, draw.file, draw.scope) for access in call.outputs]
    sizes = [prod(facts.tensor(each).shape) for each in outputs if facts.tensor(each).dtype.startswith("int")]
    return rows is not None and bool(sizes) and max(sizes) < rows


def _sources(scope: _Scope, value: ast.expr) -> set[str]:
    """Returns the names and attributes that a value of a function is computed from."""
    known = _read(value)
    assigned = [node for node in ast.walk(scope) if isinstance(node, ast.Assign)]
    for _ in range(4):
        known |= {
            name
            for node in assigned
            for target in node.targets
            if isinstance(target, ast.Name) and target.id in known
            for name in _read(node.value)
        }
    return known


def _read(node: ast.AST) -> set[str]:
    return {last_name(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)}


def _scope(facts: TraceIndex, file: str, node: ast.AST) -> _Scope:
    above: ast.AST | None = node
    while above is not None and not isinstance(above, _Scope):
        above = parent_of(facts, file, above)
    return above if isinstance(above, _Scope) else facts.tree(file)


def _written(statement: ast.AST) -> ast.Subscript | None:
    """Returns the first items of a table, if a statement writes values that it computes to them: by a slice, by
    `arange()`, or one by one in a loop that counts the values."""
    target: ast.AST | None = None
    if isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Constant):
        target = statement.targets[0]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        is_copy = called_name(statement.value) == "copy_" and isinstance(statement.value.func, ast.Attribute)
        target = statement.value.func.value if is_copy else None  # type: ignore[attr-defined]
    elif isinstance(statement, ast.For):
        return _written_one_by_one(statement)
    if not isinstance(target, ast.Subscript):
        return None
    place = target.slice
    is_first = isinstance(place, ast.Slice) and place.lower is None and place.upper is not None and place.step is None
    is_counted = isinstance(place, ast.Call) and called_name(place) in _PLACES and len(place.args) == 1
    return target if is_first or is_counted else None


def _written_one_by_one(loop: ast.For) -> ast.Subscript | None:
    if called_name(loop.iter) not in ("enumerate", "range") or not isinstance(loop.iter, ast.Call):
        return None
    if (
        len(loop.iter.args) != 1
        or loop.iter.keywords
        or (isinstance(loop.iter.args[0], ast.Call) and (called_name(loop.iter.args[0]) not in _SIZES))
    ):
        return None
    count = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
    for each in loop.body:
        target = each.targets[0] if isinstance(each, ast.Assign) else None
        is_computed = isinstance(each, ast.Assign) and not isinstance(each.value, ast.Constant)
        if is_computed and isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Name):
            if isinstance(count, ast.Name) and target.slice.id == count.id:
                return target
    return None


def _unread_places(facts: TraceIndex, file: str, write: ast.stmt, draw: _Draw) -> str | None:
    """Returns the name of the places drawn, if the code of a write has it and uses it for nothing else than a size."""
    scope = _scope(facts, file, write)
    if isinstance(scope, _Function):
        given = [each.arg for each in (*scope.args.posonlyargs, *scope.args.args) if each.arg not in ("self", "cls")]
        for place, name in enumerate(given):
            if not _reads(scope, name) and _is_given(facts, scope, place, draw):
                return name
    loop = _loop_around(facts, file, write)
    if loop is None or not _is_as_long(facts, file, write, draw):
        return None
    drawn = _bound(loop, draw)
    return next((name for name in drawn if not _reads(write, name)), None) if drawn else None


def _reads(code: ast.AST, name: str) -> bool:
    """Returns whether code reads a variable, apart from its length."""
    sizes = {
        id(part)
        for node in ast.walk(code)
        if called_name(node) in _SIZES or (isinstance(node, ast.Attribute) and node.attr == "shape")
        for part in ast.walk(node)
    }
    reads = [node for node in ast.walk(code) if isinstance(node, ast.Name) and node.id == name]
    return any(isinstance(node.ctx, ast.Load) and id(node) not in sizes for node in reads)


def _is_given(facts: TraceIndex, function: _Function, place: int, draw: _Draw) -> bool:
    """Returns whether all calls of a function give it the places drawn as an argument."""
    found = 0
    for file, tree in facts.trees():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if called_name(call) != function.name:
                continue
            name = function.args.args[place + (function.args.args[0].arg == "self")].arg
            named = [keyword.value for keyword in call.keywords if keyword.arg == name]
            given = next(iter((*named, *call.args[place : place + 1])), None)
            if _field(given) not in _bound(_scope(facts, file, call), draw):
                return False
            found += 1
    return found > 0


def _field(given: ast.expr | None) -> str:
    """Returns the last name of an expression, or the key of its item."""
    key = given.slice if isinstance(given, ast.Subscript) else None
    return str(key.value) if isinstance(key, ast.Constant) else last_name(given)


def _unconverted(value: ast.expr) -> str:
    """Returns the name of a value, also where a call makes another kind of array of it."""
    for _ in range(3):
        if isinstance(value, ast.Call) and len(value.args) == 1:
            value = value.args[0]
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
            value = value.func.value
    return last_name(value)


def _fields(draw: _Draw, own: list[str]) -> Iterator[str]:
    """Yields the keys and fields by which the function of a draw returns the places."""
    for node in ast.walk(draw.scope):
        if isinstance(node, ast.Call):
            yield from (each.arg for each in node.keywords if each.arg is not None and _unconverted(each.value) in own)
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (str(k.value) for k, v in pairs if isinstance(k, ast.Constant) and _unconverted(v) in own)


def _bound(scope: ast.AST, draw: _Draw) -> list[str]:
    """Lists the variables of some code that get the places drawn, from the draw or from the function that returns
    them."""
    own = _names_of(draw.scope, draw)
    if any(node is scope for node in ast.walk(draw.scope)):
        return own
    returned = [node.value for node in ast.walk(draw.scope) if isinstance(node, ast.Return) and node.value is not None]
    function = draw.scope.name if isinstance(draw.scope, _Function) else ""
    names = list(_fields(draw, own))
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign) or not function or called_name(node.value) != function:
            continue
        targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else []
        for value in returned:
            parts = value.elts if isinstance(value, ast.Tuple) else []
            pairs = zip(parts, targets, strict=True) if len(parts) == len(targets) else ()
            names += [last_name(target) for part, target in pairs if _unconverted(part) in own]
    return names


def _names_of(scope: ast.AST, draw: _Draw) -> list[str]:
    """Lists the variables that a draw is assigned to, also as another kind of array."""
    names: list[str] = []
    for node in (each for each in ast.walk(scope) if isinstance(each, ast.Assign)):
        targets = [target for target in node.targets if isinstance(target, ast.Name)]
        made = node.value
        while isinstance(made, ast.Call) and made is not draw.call:
            inner = made.func.value if isinstance(made.func, ast.Attribute) else None
            is_method = isinstance(inner, ast.Call) or last_name(inner) in names
            made = inner if is_method and inner is not None else made.args[0] if made.args else ast.Constant(0)
        if made is draw.call or (isinstance(made, ast.Name) and made.id in names):
            names += [target.id for target in targets]
    return names


def _loop_around(facts: TraceIndex, file: str, node: ast.AST) -> ast.For | ast.While | None:
    above = parent_of(facts, file, node)
    while above is not None and not isinstance(above, ast.For | ast.While | _Scope):
        above = parent_of(facts, file, above)
    return above if isinstance(above, ast.For | ast.While) else None


def _is_as_long(facts: TraceIndex, file: str, write: ast.stmt, draw: _Draw) -> bool:
    """Returns whether the calls of a write compute one number for each place drawn: what gets a new value for each row
    of the table, as at the end of an epoch, has as many as the table."""
    sizes = {
        prod(facts.tensor(a.tensor).shape) for call in _calls_in(facts, draw.file, draw.call) for a in call.outputs
    }
    if not sizes:
        given = [keyword.value for keyword in draw.call.keywords if keyword.arg in ("size", "k")] + draw.call.args[1:2]
        numbers = [number_of(facts, draw.file, each) for each in given]
        sizes = {int(number) for number in numbers if number is not None}
    made = {prod(facts.tensor(a.tensor).shape) for call in _calls_in(facts, file, write) for a in call.outputs}
    return bool(sizes & made) and min(sizes) > 1 and max(made) <= max(sizes)


def _calls_in(facts: TraceIndex, file: str, node: ast.AST) -> Iterator[Call]:
    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]
    for call in facts.calls:
        span = facts.span(call.site)
        if span is not None and span.file == file and span.line in lines and not facts.trace.sites[call.site].through:
            yield call


def _writes_to(facts: TraceIndex, table: str, places: str) -> bool:
    """Returns whether a program writes to items of a table by places that a variable of this name has, or by others
    that a loop over them takes."""
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and last_name(node.value) == table:
                if places in _read(node.slice) and not isinstance(node.slice, ast.Slice):
                    return True
            if isinstance(node, ast.Call) and called_name(node) in ("scatter_", "index_put_", "index_copy_", "put_"):
                if table in _read(node.func):
                    return True
    return False


def _is_ordered_anew(facts: TraceIndex, table: str) -> bool:
    """Returns whether a program may move the rows of a table, as the drawn ones to its front: it sets the table again
    in a loop or a method, copies values to it, or gives parts of it to other parts."""
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if called_name(node) in ("copy_", "copyto", "swap") and isinstance(node, ast.Call) and table in _read(node):
                if _written(ast.Expr(node)) is None:
                    return True
            elif isinstance(node, ast.Assign):
                parts = [each for each in ast.walk(node) if isinstance(each, ast.Subscript)]
                if len({type(each.ctx) for each in parts if last_name(each.value) == table}) > 1:
                    return True
            elif isinstance(node, ast.Name | ast.Attribute) and last_name(node) == table:
                if isinstance(node.ctx, ast.Store) and not isinstance(parent_of(facts, file, node), ast.AugAssign):
                    scope = _scope(facts, file, node)
                    is_first = isinstance(scope, ast.Module) or isinstance(node, ast.Name) or scope.name == "__init__"
                    if not is_first or _loop_around(facts, file, node) is not None:
                        return True
    return False
