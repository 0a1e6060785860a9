"""Finds norms, also those that a script writes as the root of a sum of squares: `x.square().sum(-1).sqrt()`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_NORMS = frozenset(("norm", "vector_norm", "linalg_norm"))
_POWERS = {"square": 2.0, "sqrt": 0.5}
_KEPT_POSITIVE = frozenset("add radd iadd clamp clip clamp_min".split())  # by a small number, before the root
_MAX_CALLS = 4


@dataclass(frozen=True, slots=True)
class TakenNorm:
    """A norm: the call that returns it, and what it is of."""

    call: Call
    value: int  # tensor
    read: Call  # the first of the calls, which reads the value


def taken_norm(facts: TraceIndex, call: Call) -> TakenNorm | None:
    """Returns the norm that a call computes, or the last step of."""
    if len(call.inputs) != 1 or len(call.outputs) != 1:
        return None
    if op_name(call) in _NORMS:
        return TakenNorm(call, call.inputs[0].tensor, call)
    made = call if written_power(facts, call) == 0.5 else None
    for _ in range(_MAX_CALLS if made is not None else 0):
        made = _before(facts, made)
        if made is None or op_name(made) not in _KEPT_POSITIVE or len(made.inputs) != 1:
            break
    if made is not None and _sums_squares(facts, made):
        return TakenNorm(call, made.inputs[0].tensor, made)
    square = _before(facts, made) if made is not None and op_name(made) == "sum" else None
    is_square = square is not None and written_power(facts, square) == 2
    return TakenNorm(call, square.inputs[0].tensor, square) if square is not None and is_square else None


def _sums_squares(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call multiplies a tensor by itself and sums the products: `einsum("bct,bct->bt", x, x)`."""
    numbers, node = [access.tensor for access in call.inputs], facts.node_at(call.site)
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if op_name(call) != "einsum" or len(set(numbers)) != 1 or not isinstance(given, ast.Constant):
        return False
    operands = str(given.value).replace(" ", "").partition("->")[0].split(",")
    return len(operands) == 2 and operands[0] == operands[1]


def written_power(facts: TraceIndex, call: Call) -> float | None:
    """Returns the exponent of a power; None if neither the operation nor the source shows it."""
    name, inputs = op_name(call), [access.tensor for access in call.inputs]
    if name in ("mul", "imul") and len(inputs) == 2 and inputs[0] == inputs[1]:
        return 2.0
    if name != "pow" or len(inputs) != 1:
        return _POWERS.get(name)
    node = facts.node_at(call.site)
    if isinstance(node, ast.BinOp):
        return written_number(facts, node.right) if isinstance(node.op, ast.Pow) else None
    given = [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []
    return written_number(facts, given[-1]) if given else None


def _before(facts: TraceIndex, call: Call | None) -> Call | None:
    return None if call is None else next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
