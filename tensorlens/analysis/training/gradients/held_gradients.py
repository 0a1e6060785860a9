"""Follows gradients that a script has read: which tensor is one, a plain multiple of one, or a copy."""

from __future__ import annotations

import ast
from bisect import bisect_left
from dataclasses import dataclass

from tensorlens.analysis.code_around import statement_around, upwards
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.timeline import Moment
from tensorlens.records.model import Call

SAME = frozenset("detach clone data to float double cpu contiguous flatten reshape view ravel div mul".split())
_ALIASES = frozenset("detach data view flatten reshape ravel contiguous".split())
_SCALING = frozenset(("div", "mul"))
_DATA_READ = "Tensor.data.__get__"


@dataclass(frozen=True, slots=True)
class HeldGradient:
    """A tensor that is a gradient, or a plain multiple or copy of one."""

    leaf: int
    gradient: int
    at: int | None  # the read of the gradient from which a copy was made; None: it shares the gradient's memory


def called_op(call: Call) -> str:
    return {_DATA_READ: "data", "Tensor.__truediv__": "div"}.get(call.op, op_name(call))


def held_by(facts: TraceIndex, call: Call, held: dict[int, HeldGradient]) -> HeldGradient | None:
    """Returns what the result of a call holds of a gradient, if it holds one; of several in a row, the first one."""
    given, name = [held.get(access.tensor) for access in call.inputs], called_op(call)
    first = given[0]
    is_same = (name == "cat" and all(given)) or (name in SAME and len(given) == 1)
    if first is None or not is_same or (name in _SCALING and _is_counted(facts, call)):
        return None
    return first if name in _ALIASES or first.at is not None else HeldGradient(first.leaf, first.gradient, call.index)


def _is_counted(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a factor or divisor counts the rounds of a loop, as in `p.grad / (k + 1)`, a mean so far."""
    span, node = facts.span(call.site), facts.node_at(call.site)
    statement = None if span is None else statement_around(facts, span)
    if span is None or node is None or statement is None:
        return False
    counts = set[str]()
    for loop in (each for each in upwards(facts, span.file, statement) if isinstance(each, ast.For | ast.While)):
        if isinstance(loop, ast.For) and called_name(loop.iter) in ("range", "enumerate", "count"):
            target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
            counts.add(last_name(target))
        counts |= {last_name(each.target) for each in ast.walk(loop) if isinstance(each, ast.AugAssign)}
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else getattr(node, "args", [])
    factors = [part for part in parts if not any(last_name(each) == "grad" for each in ast.walk(part))]
    return any(last_name(each) in counts - {""} for part in factors for each in ast.walk(part))


def adds_up(facts: TraceIndex, moments: list[Moment], gradient: int, one: int, other: int) -> bool:
    """Returns whether a pass adds to a gradient between two reads of it, and nothing else changes it."""
    first, last = (bisect_left(moments, at, key=lambda moment: moment.index) for at in (one, other))
    between = moments[first:last]
    if not between or any(moment.kind != "fill" for moment in between):
        return False
    memory = facts.storage_of(gradient, other)
    calls = facts.calls_between(one + 1, other - 1)
    return not any(facts.storage_of(write.tensor, call.index) == memory for call in calls for write in call.writes)
