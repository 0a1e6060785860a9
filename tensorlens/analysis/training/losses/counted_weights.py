"""Finds class weights of a loss that grow with how often the class is there: `n_pos / n_neg`, or `counts / total`.

A weight by class is there to give the rarer classes more; of these the larger class gets the larger weight.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.pair_tables import made_by, shape_of
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_CASTS = frozenset("float double to long int half type clone view reshape unsqueeze flatten squeeze as_tensor".split())
_DIVISIONS = frozenset("div truediv true_divide divide".split())
_GROWING = frozenset("mul rmul multiply sqrt add radd clamp clamp_min log1p".split()) | _CASTS
_COUNTS = frozenset("sum count_nonzero mean".split())
_TURNS = frozenset("rsub logical_not invert".split())  # `1 - y`, `len(y) - n`
_JOINS = frozenset("stack cat".split())
_KEEPING = _CASTS | frozenset("clamp clamp_min getitem".split())
_MOST_CALLS = 16
_MOST_ABOVE = 60
Kind = Literal["ones", "zeros", ""]


@dataclass(frozen=True, slots=True)
class CountedWeight:
    """A loss whose class weights grow with the counts of its own targets, and the call that divided them."""

    loss: Call
    made: Call
    is_ratio: bool  # of ones to zeros; else the weights are shares of the classes


def counted_weights(facts: TraceIndex) -> Iterator[CountedWeight]:
    """Yields these losses, one for each line."""
    reported = set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            is_known = op_name(call) in ("cross_entropy", "nll_loss", "binary_cross_entropy_with_logits")
            if not is_known or call.site in reported or len(call.inputs) < 3:
                continue
            weight, target = call.inputs[-1].tensor, call.inputs[1].tensor
            is_binary = op_name(call) == "binary_cross_entropy_with_logits"
            above = _labels(facts, target, call.index)
            made = (_ratio if is_binary else _share)(facts, weight, call.index, above)
            if made is not None:
                reported.add(call.site)
                yield CountedWeight(call, made, is_binary)


def _labels(facts: TraceIndex, target: int, before: int) -> dict[int, bool]:
    """Returns the tensors that a target is taken from, and whether ones of each are zeros of the target: `1 - y`."""
    found = {target: False}
    waiting = [(target, before)]
    for number, limit in waiting:
        made = made_by(facts, number, limit)
        if made is None or not made.inputs or len(waiting) > _MOST_ABOVE:
            continue
        name, is_turned = op_name(made), found[number]
        if name in _TURNS or (name == "eq" and _compared(facts, made) == 0):
            if name == "rsub" and not _is_one_less(facts, made):
                continue
            is_turned = not is_turned
        elif name not in _KEEPING | _JOINS and not (name == "eq" and _compared(facts, made) == 1):
            continue
        for access in made.inputs if name in _JOINS else made.inputs[:1]:
            if access.tensor not in found:
                found[access.tensor] = is_turned
                waiting.append((access.tensor, made.index))
            elif found[access.tensor] is not is_turned:
                return {}
    return found


def _is_one_less(facts: TraceIndex, call: Call) -> bool:
    node = facts.node_at(call.site)
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and written_number(facts, node.left) == 1


def _ratio(facts: TraceIndex, number: int, before: int, above: dict[int, bool]) -> Call | None:
    """Returns the division of the number of ones by the number of zeros that a weight is."""
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return None
        if op_name(made) in _DIVISIONS and len(made.inputs) == 2:
            ones, zeros = (_counted(facts, access.tensor, made.index, above) for access in made.inputs)
            return made if (ones, zeros) == ("ones", "zeros") else None
        if op_name(made) not in _CASTS | {"clamp", "sqrt"} or len(made.inputs) != 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _counted(facts: TraceIndex, number: int, before: int, above: dict[int, bool]) -> Kind:
    """Returns whether a number counts the ones or the zeros of a target: `y.sum()`, `(1 - y).sum()`, `len(y) - n`."""
    is_less, is_counted = False, False
    for _ in range(_MOST_CALLS):
        if number in above:
            return ("zeros" if is_less is not above[number] else "ones") if is_counted else ""
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return ""
        name = op_name(made)
        if name in _COUNTS:
            is_counted = True
        elif name in _TURNS or (name == "eq" and _compared(facts, made) == 0):
            is_less = not is_less
        elif not (name == "eq" and _compared(facts, made) == 1) and (name not in _KEEPING or len(made.inputs) != 1):
            return ""
        number, before = made.inputs[0].tensor, made.index
    return ""


def _compared(facts: TraceIndex, call: Call) -> object:
    """Returns the number that a tensor is compared with."""
    node = facts.node_at(call.site)
    last = node.comparators[-1] if isinstance(node, ast.Compare) else None
    return last.value if isinstance(last, ast.Constant) else None


def _share(facts: TraceIndex, number: int, before: int, above: dict[int, bool]) -> Call | None:
    """Returns the division that makes counts of classes to shares, if the weights are these up to factors."""
    found = None
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return None
        name, given = op_name(made), [access.tensor for access in made.inputs]
        if name == "bincount":
            return found if _reads(facts, given[0], made.index, above) else None
        table = given[0]
        others = [each for each in given[1:] if shape_of(facts, each) not in ((), (1,))]
        if others or len(shape_of(facts, table)) != 1 or name not in _GROWING | _DIVISIONS:
            return None
        if name in _DIVISIONS:
            if len(given) == 1 and not _is_dividend(facts, made):
                return None
            found = made
        number, before = table, made.index
    return None


def _is_dividend(facts: TraceIndex, made: Call) -> bool:
    """Returns whether the source divides a tensor by a number, and not the number by the tensor: `torch.div(n, x)`."""
    node, written = facts.node_at(made.site), written_call(facts, made)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div)
    if written is None or written.kind != "function":
        return written is not None and written.kind == "method"
    first, second = written.argument(0, "input"), written.argument(1, "other")
    return second is not None and _is_number(facts, second) and first is not None and not _is_number(facts, first)


def _is_number(facts: TraceIndex, node: ast.expr) -> bool:
    return written_number(facts, node) is not None or called_name(node) in ("len", "item", "numel")


def _reads(facts: TraceIndex, number: int, before: int, above: dict[int, bool]) -> bool:
    """Returns whether what was counted is what the targets are taken from, up to its form."""
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if number in above or made is None or op_name(made) not in _CASTS | {"getitem"} or not made.inputs:
            return above.get(number) is False
        number, before = made.inputs[0].tensor, made.index
    return False
