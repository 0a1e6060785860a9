"""Finds contrastive losses that pair each row with the one half of the rows away, while the two of a sample are next to
each other: `torch.stack([a, b], dim=1).flatten(0, 1)` gives the rows a0, b0, a1, b1, and so on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.looked_at import by_line
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.records.model import Call

_MERGING = frozenset("view reshape flatten".split())
_PRODUCTS = frozenset("matmul rmatmul mm einsum linear".split())
_DIAGONALS = frozenset("diag diagonal".split())
_MOVING = frozenset("index_select roll flip sort gather take_along_dim t T mT transpose permute cat stack".split())
_SHIFTS = (frozenset(("arange", "add", "remainder")), frozenset(("arange", "roll")), frozenset(("arange", "cat")))
_JOINS = frozenset("cat concat concatenate hstack vstack stack row_stack".split())
_REPEATS = frozenset("repeat tile expand expand_as view reshape flatten unflatten broadcast_to".split())
_FROM_OUTSIDE = frozenset("from_numpy as_tensor tensor asarray".split())
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class ShiftedPartners:
    """A call that pairs rows half of all apart, and the call that has put two rows of each sample side by side."""

    pairs: Call
    merged: Call
    samples: int


def shifted_partners(facts: TraceIndex) -> Iterator[ShiftedPartners]:
    """Yields these calls, one for each line."""
    reported = set[int]()
    measured = {
        call.index: fact.rows
        for line in by_line(facts, facts.trace.inspection.chosen_partners)
        for call, fact in line
        if all(2 * each.distance == each.rows > 4 for _, each in line)
    }
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            rows = _paired_rows(facts, call) or measured.get(call.index, 0) if call.site not in reported else 0
            product = _product(facts, call, rows) if rows else None
            merged = None if product is None else _merged(facts, product, rows)
            if merged is not None:
                reported.add(call.site)
                yield ShiftedPartners(call, merged, rows // 2)


def _paired_rows(facts: TraceIndex, call: Call) -> int:
    """Returns the number of rows of a square table whose elements half of the rows away a call takes, or 0."""
    shape = _shape(facts, call.inputs[0].tensor) if call.inputs and call.outputs else ()
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] % 2 or shape[0] < 6:
        return 0
    if op_name(call) in _DIAGONALS:
        return shape[0] if _shape(facts, call.outputs[0].tensor) == (shape[0] // 2,) else 0
    is_loss = op_name(call) == "cross_entropy" and len(call.inputs) == 2
    target = call.inputs[1].tensor if is_loss else -1
    is_shifted = is_loss and _shape(facts, target) == shape[:1] and _is_shifted(facts, target, call.index)
    return shape[0] if is_shifted else 0


def _is_shifted(facts: TraceIndex, target: int, before: int) -> bool:
    """Returns whether a target is `(arange(2 * n) + n) % (2 * n)`, `arange(2 * n).roll(n)`, or two such parts."""
    made, waiting = list[Call](), [(target, before)]
    for number, limit in waiting:
        for call in facts.producers(number, limit)[:1]:
            if op_name(call) == "to" or call in made or len(made) > _MAX_DEPTH:
                waiting += [(call.inputs[0].tensor, call.index)] if op_name(call) == "to" else []
                continue
            made.append(call)
            waiting += [(access.tensor, call.index) for access in call.inputs]
    names = {op_name(call) for call in made}
    if names not in _SHIFTS:
        return False
    sizes = [_shape(facts, call.outputs[0].tensor)[0] for call in made if op_name(call) == "arange"]
    whole = _shape(facts, target)[0]
    if "cat" in names:
        starts = [_arguments(facts, call) for call in made if op_name(call) == "arange"]
        return sizes == [whole // 2] * 2 and len(starts[0]) == 2 and len(starts[1]) == 1
    moved = next(call for call in made if op_name(call) in ("add", "roll"))
    return sizes == [whole] and _is_half(facts, moved, next(call for call in made if op_name(call) == "arange"))


def _arguments(facts: TraceIndex, call: Call) -> list[ast.expr]:
    node = facts.node_at(call.site)
    return list(node.args) if isinstance(node, ast.Call) else []


def _is_half(facts: TraceIndex, moved: Call, arange: Call) -> bool:
    """Returns whether the source shifts by the half of what it gives `arange()`: `n` of `2 * n`, or `n // 2` of `n`."""
    node, whole = facts.node_at(moved.site), _arguments(facts, arange)
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    else:
        parts = list(node.args) + [each.value for each in node.keywords] if isinstance(node, ast.Call) else []
    span = facts.span(moved.site)
    if len(whole) != 1 or span is None:
        return False
    scope = scope_around(facts, span.file, span.line)
    values = {ast.unparse(part) for part in parts} | {_value(scope, part) for part in parts}
    size = {ast.unparse(whole[0]), _value(scope, whole[0])}
    halves = {half.format(each) for each in size for half in ("{} // 2", "int({} / 2)")}
    doubled = {double.format(each) for each in values for double in ("2 * {}", "{} * 2", "{0} + {0}")}
    return bool(halves & values or doubled & size)


def _value(scope: ast.AST, part: ast.expr) -> str:
    """Returns what the only assignment of a function gives a name, as the source writes it."""
    name = part.id if isinstance(part, ast.Name) else ""
    values = [
        node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and any(isinstance(each, ast.Name) and each.id == name for each in node.targets)
    ]
    return ast.unparse(values[0]) if len(values) == 1 else ""


def _product(facts: TraceIndex, call: Call, rows: int) -> Call | None:
    """Returns the product of rows with themselves that a table is computed from, element by element."""
    number, before = call.inputs[0].tensor, call.index
    for _ in range(_MAX_DEPTH):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) in _PRODUCTS:
            return made
        tables = [access.tensor for access in made.inputs if _shape(facts, access.tensor) == (rows, rows)]
        trained = [each for each in tables if facts.requires_grad(each, made.index - 1)]
        if not trained or op_name(made) in _MOVING:
            return None
        number, before = trained[0], made.index
    return None


def _merged(facts: TraceIndex, product: Call, rows: int) -> Call | None:
    """Returns the call that has merged two rows of each sample to the rows of a product, if none moves rows since."""
    number, before = product.inputs[0].tensor, product.index
    if len({_source(facts, access.tensor, product.index) for access in product.inputs}) != 1:
        return None
    for _ in range(_MAX_DEPTH):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or not made.outputs or op_name(made) in _MOVING:
            return None
        shape = _shape(facts, made.inputs[0].tensor)
        is_merged = op_name(made) in _MERGING and shape[:2] == (rows // 2, 2)
        is_repeated = op_name(made) == "repeat_interleave" and len(made.inputs) == 1 and shape[:1] == (rows // 2,)
        if is_merged or is_repeated:
            return None if _has_parts(facts, made, rows // 2) else made
        is_moved = op_name(made) == "getitem" and len(made.inputs) > 1
        if is_moved or shape[:1] != (rows,) or _shape(facts, made.outputs[0].tensor)[:1] != (rows,):
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _has_parts(facts: TraceIndex, merged: Call, samples: int) -> bool:
    """Returns whether the samples may be there several times: a call above has joined or repeated parts of them, or
    has their values from outside of PyTorch."""
    for number, made in ancestry(facts, merged.inputs[0].tensor, merged.index):
        shape, name = _shape(facts, number), op_name(made)
        if shape[:1] != (samples,):
            continue
        parts = {_shape(facts, access.tensor)[:1] for access in made.inputs} - {(samples,)}
        is_collated = name in _JOINS and len(made.inputs) == samples
        if (name == "remainder" and len(shape) == 1) or (name in _FROM_OUTSIDE and len(shape) > 1):
            return True
        if name in _JOINS | _REPEATS and parts and not is_collated:
            return True
    return False


def _source(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor that another one is, or is the transpose of."""
    made = next(iter(facts.producers(number, before)), None)
    is_turned = made is not None and op_name(made) in ("t", "T", "mT", "transpose", "permute") and made.inputs
    return made.inputs[0].tensor if made is not None and is_turned else number


def _shape(facts: TraceIndex, number: int) -> tuple[int, ...]:
    return facts.tensor(number).shape
