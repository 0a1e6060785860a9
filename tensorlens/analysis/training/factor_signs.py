"""Reads the sign of the number that a product of one tensor multiplies by, where the source says it."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.written_numbers import only_value, written_number
from tensorlens.records.model import Call, Span

_REORDERING = frozenset("sorted reversed set frozenset sort reverse shuffle".split())
_CHANGING = frozenset("update setdefault pop clear append extend insert".split())
_Numbers = dict[str | int, float]


def factor_sign(facts: TraceIndex, call: Call) -> int:
    """Returns -1 if the source shows that the number is negative, else 1."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call):
        sides = node.args
    return -1 if span is not None and any(_is_negative(facts, call, span, side) for side in sides) else 1


def _is_negative(facts: TraceIndex, call: Call, span: Span, side: ast.expr) -> bool:
    number = written_number(facts, side)
    number = number_of(facts, span.file, side) if number is None else number
    read = _read_item(side)
    if number is None and read is not None:
        number = _of_item(facts, call, span, *read)
    if number is None and isinstance(side, ast.Name):
        number = _of_round(facts, call, span, side)
    if number is None and isinstance(side, ast.UnaryOp) and isinstance(side.op, ast.USub):
        made = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
        return made is None or facts.span(made.site) != facts.span_of(side, span.file)  # that of the tensor
    return number is not None and number < 0


def _of_round(facts: TraceIndex, call: Call, span: Span, name: ast.Name) -> float | None:
    """Returns the number that a loop over written numbers has given a variable in the round of a call."""
    over = _loop_over(facts, span, name)
    return None if over is None else _in_round(facts, call, list(_over(facts, *over).values()))


def _in_round(facts: TraceIndex, call: Call, numbers: list[float]) -> float | None:
    """Returns the number that belongs to the round of a call, if there are as many rounds as numbers."""
    rounds = _rounds(facts, call)
    return numbers[rounds.index(call.index)] if numbers and len(rounds) == len(numbers) else None


def _loop_over(facts: TraceIndex, span: Span, name: ast.Name) -> tuple[ast.expr, int] | None:
    """Returns what the loop around a name goes through that gives the name its values, and the place of the name."""
    node: ast.AST | None = name
    while node is not None:
        loops = [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
        for loop in loops:
            place = _place(loop.target, name.id)
            if place is not None:
                return loop.iter, place
        node = parent_of(facts, span.file, node)
    return None


def _read_item(side: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Returns the holder and the key of `weights[key]` and `weights.get(key, 1.0)`."""
    if isinstance(side, ast.Subscript):
        return side.value, side.slice
    if isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and side.func.attr == "get" and side.args:
        return side.func.value, side.args[0]
    return None


def _of_item(facts: TraceIndex, call: Call, span: Span, holder: ast.expr, key: ast.expr) -> float | None:
    """Returns the number that a dict or a list has for a key, also for one that a loop over the keys gives."""
    numbers = _numbers(facts, holder)
    if isinstance(key, ast.Constant):
        return numbers.get(key.value)  # type: ignore[arg-type]
    over = _loop_over(facts, span, key) if numbers and isinstance(key, ast.Name) else None
    if over is None or over[1] != 0:
        return None
    call_over = over[0] if isinstance(over[0], ast.Call) else None
    called = "" if call_over is None else called_name(call_over)
    if all(isinstance(each, int) for each in numbers):
        is_plain = call_over is not None and len(call_over.args) == 1 and not call_over.keywords
        is_known = is_plain and called in ("enumerate", "range") and [*numbers] == [*range(len(numbers))]
    else:
        is_known = called in ("", "items", "keys") and _has_one_order(facts, [*numbers])
    return _in_round(facts, call, list(numbers.values())) if is_known else None


def _has_one_order(facts: TraceIndex, keys: list[str | int]) -> bool:
    """Returns whether all collections that the program writes out, or fills item by item, have some keys in the order
    that is given, and no line changes an order."""
    filled: dict[str, list[object]] = {}
    orders: list[list[object]] = []
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Set | ast.SetComp) or (isinstance(node, ast.Call) and called_name(node) in _REORDERING):
            return False
        if isinstance(node, ast.Call):
            orders.append([each.arg for each in node.keywords])
        elif isinstance(node, ast.Dict | ast.List | ast.Tuple):
            written = node.keys if isinstance(node, ast.Dict) else [_first(each) for each in node.elts]
            orders.append([each.value for each in written if isinstance(each, ast.Constant)])
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            filled.setdefault(ast.unparse(node.value), []).append(key)
    for order in (*orders, *filled.values()):
        known = [each for each in dict.fromkeys(order) if each in keys]
        if known != [each for each in keys if each in known]:
            return False
    return True


def _first(node: ast.expr) -> ast.expr:
    return node.elts[0] if isinstance(node, ast.Tuple) and node.elts else node


def _place(target: ast.expr, name: str) -> int | None:
    """Returns which of the variables of a loop a name is: 0 for the only one."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return next((n for n, part in enumerate(parts) if isinstance(part, ast.Name) and part.id == name), None)


def _over(facts: TraceIndex, over: ast.expr, place: int) -> _Numbers:
    """Returns the numbers that one variable of a loop gets."""
    if not isinstance(over, ast.Call):
        return _numbers(facts, over) if place == 0 else {}
    called = called_name(over)
    if called == "zip" and place < len(over.args):
        return _over(facts, over.args[place], 0)
    is_dict = (called, place) in (("values", 0), ("items", 1)) and not over.args
    return _numbers(facts, over.func.value) if is_dict and isinstance(over.func, ast.Attribute) else {}


def _numbers(facts: TraceIndex, holder: ast.expr) -> _Numbers:
    """Returns the numbers of a dict, list or tuple that the source writes out in the only place that sets its name."""
    if isinstance(holder, ast.Name | ast.Attribute):
        name = holder.id if isinstance(holder, ast.Name) else holder.attr
        if _is_changed(facts, name):
            return {}
        holder = only_value(facts, name) or _only_given(facts, name) or holder
        if isinstance(holder, ast.Name) and not _is_changed(facts, holder.id):
            holder = only_value(facts, holder.id) or _only_given(facts, holder.id) or holder
    found: dict[str | int, float | None] = {}
    if isinstance(holder, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in holder.keys]
        pairs = zip(keys, holder.values, strict=True)
        found = {key: written_number(facts, value) for key, value in pairs if isinstance(key, str | int)}
    elif isinstance(holder, ast.List | ast.Tuple):
        found = {place: written_number(facts, value) for place, value in enumerate(holder.elts)}
    numbers = {key: value for key, value in found.items() if value is not None}
    return numbers if len(numbers) == len(found) else {}


def _only_given(facts: TraceIndex, name: str) -> ast.expr | None:
    """Returns what the only call gives the only function, or class, that has an argument with a name."""
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    functions = [
        (node, [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)])
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    having = [(node, names) for node, names in functions if name in names]
    set_to = [node.value for node in nodes if name in _set_names(node)]  # type: ignore[attr-defined]
    is_reset = any(not isinstance(each, ast.Name) or each.id != name for each in set_to)  # but to the argument itself
    if len(having) != 1 or is_reset:
        return None
    function, names = having[0]
    if isinstance(function, ast.Lambda):
        return None
    holder = next((node for node in nodes if isinstance(node, ast.ClassDef) and function in node.body), None)
    called = holder.name if holder is not None and function.name == "__init__" else function.name
    calls = [node for node in nodes if isinstance(node, ast.Call) and called_name(node) == called]
    if len(calls) != 1 or any(isinstance(each, ast.Starred) for each in calls[0].args):
        return None
    given = dict(zip(names[holder is not None :], calls[0].args, strict=False))
    given |= {each.arg: each.value for each in calls[0].keywords if each.arg}
    value = given.get(name)
    return only_value(facts, value.id) if isinstance(value, ast.Name) else value


def _set_names(node: ast.AST) -> set[str]:
    """Returns the names and attributes that a statement sets."""
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {getattr(part, "attr", getattr(part, "id", "")) for each in targets for part in ast.walk(each)}


def _is_changed(facts: TraceIndex, name: str) -> bool:
    """Returns whether a line may change an item of what has a name."""
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        is_item = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
        is_method = isinstance(node, ast.Attribute) and node.attr in _CHANGING
        changed = getattr(node, "value", None) if is_item or is_method else None
        if name in (getattr(changed, "attr", ""), getattr(changed, "id", "")):
            return True
    return False


def _rounds(facts: TraceIndex, call: Call) -> list[int]:
    """Returns the calls of the same line between two backward passes."""
    first = max((each.index for each in facts.backwards if each.index < call.index), default=-1)
    last = min((each.index for each in facts.backwards if each.index > call.index), default=call.index)
    return [each.index for each in facts.calls_between(first + 1, last) if each.site == call.site]
