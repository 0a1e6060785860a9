"""Finds the triangle that a mask is: `tril()`, `triu()`, or a comparison of places along columns and along rows."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

SAME = frozenset("getitem unsqueeze squeeze expand view to bool contiguous clone detach type_as".split())
NOT = frozenset("invert logical_not bitwise_not not".split())
_ONES = frozenset("ones ones_like new_ones".split())
_FULL = frozenset("full full_like new_full".split())
_NUMBERS = frozenset("float int type".split())
_COMPARISONS = {"gt": (True, 1), "ge": (True, 0), "lt": (False, -1), "le": (False, 0)}  # of columns with rows
_MAX_CALLS = 8


@dataclass(frozen=True, slots=True)
class Triangle:
    """The call that makes a triangle, and the places where a mask is True."""

    made: Call
    is_upper: bool
    diagonal: float  # the first of an upper triangle, the last of another one

    def opposite(self) -> Triangle:
        step = -1 if self.is_upper else 1
        return Triangle(self.made, not self.is_upper, self.diagonal + step)


def triangle_of(facts: TraceIndex, number: int, before: int) -> Triangle | None:
    """Returns the triangle that a mask is, as it was made of ones, or of the places of rows and columns."""
    is_not = False
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        found = _made(facts, made)
        if found is not None:
            return found.opposite() if is_not else found
        name = op_name(made)
        if len(made.inputs) > 1 or (name == "getitem" and not is_from_start(facts, made)):
            return None
        if (name == "eq" and _compared(facts, made) == 0) or name in NOT or _is_one_less(facts, made):
            is_not = not is_not
        elif name not in SAME | _NUMBERS and not (name == "eq" and _compared(facts, made) == 1):
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _made(facts: TraceIndex, call: Call) -> Triangle | None:
    name = op_name(call)
    if name in ("tril", "triu"):
        base, diagonal = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None), _diagonal(facts, call)
        is_known = base is not None and diagonal is not None and (op_name(base) in _ONES or full_of(facts, base))
        return Triangle(call, name == "triu", diagonal or 0) if is_known else None
    if name not in _COMPARISONS or len(call.inputs) != 2:
        return None
    sides = [_places(facts, access.tensor, call.index) for access in call.inputs]
    is_upper, diagonal = _COMPARISONS[name]
    if sides == ["column", "row"]:
        return Triangle(call, is_upper, diagonal)
    return Triangle(call, not is_upper, -diagonal) if sides == ["row", "column"] else None


def full_of(facts: TraceIndex, call: Call) -> float | None:
    """Returns the number that `torch.full()` makes a tensor of."""
    node = facts.node_at(call.site)
    if op_name(call) not in _FULL or not isinstance(node, ast.Call):
        return None
    given = [each.value for each in node.keywords if each.arg == "fill_value"] or node.args[1:2]
    if given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, bool):
        return float(given[0].value)
    return written_number(facts, given[0]) if given else None


def _places(facts: TraceIndex, number: int, before: int) -> str:
    """Returns whether a tensor has the places of columns or of rows, from 0."""
    shape = facts.tensor(number).shape[-2:]
    side = "column" if len(shape) < 2 or shape[0] == 1 else "row" if shape[1] == 1 else ""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is not None and op_name(made) == "arange":
            node = facts.node_at(made.site)
            is_from_zero = isinstance(node, ast.Call) and len(node.args) == 1
            return side if is_from_zero else ""
        if made is None or len(made.inputs) != 1 or op_name(made) not in SAME:
            return ""
        if op_name(made) == "getitem" and not is_from_start(facts, made):
            return ""
        number, before = made.inputs[0].tensor, made.index
    return ""


def is_from_start(facts: TraceIndex, call: Call) -> bool:
    """Returns whether an index takes the beginning of each dimension, so that the diagonal stays where it is."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Subscript):
        return False
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return all(
        (isinstance(each, ast.Slice) and each.lower is None and each.step is None)
        or (isinstance(each, ast.Constant) and each.value in (None, Ellipsis))
        for each in indices
    )


def _is_one_less(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call computes `1 - mask`."""
    node = facts.node_at(call.site)
    is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and op_name(call) in ("rsub", "sub")
    return is_difference and written_number(facts, node.left) == 1  # type: ignore[union-attr]


def _compared(facts: TraceIndex, call: Call) -> float | None:
    """Returns the number that a comparison of the source compares with."""
    node = facts.node_at(call.site)
    return written_number(facts, node.comparators[0]) if isinstance(node, ast.Compare) else None


def _diagonal(facts: TraceIndex, triangle: Call) -> float | None:
    """Returns the diagonal at which a triangle begins, as the source writes it."""
    node = facts.node_at(triangle.site)
    if not isinstance(node, ast.Call):
        return None
    is_method = triangle.op.startswith("Tensor.")
    given = [each.value for each in node.keywords if each.arg == "diagonal"] or node.args[0 if is_method else 1 :][:1]
    return written_number(facts, given[0]) if given else 0
