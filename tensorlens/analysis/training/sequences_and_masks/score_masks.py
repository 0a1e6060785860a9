"""Finds calls that set some scores of attention to a very low number, by a mask of bools or by a sum."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import islice
from math import isinf

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.counted_masks import filled_value, filling
from tensorlens.analysis.training.triangles import full_of
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

FILLS = frozenset("masked_fill masked_fill_ where setitem".split())
SUMS = frozenset(("add", "radd", "iadd"))
_DIFFERENCES = frozenset(("sub", "isub"))
_TRIANGLES = frozenset(("tril", "triu"))
_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_PASSING = frozenset("getitem unsqueeze squeeze expand view to contiguous clone detach type_as float".split())
_HIDING = -1e3  # a score that no other position needs
_WEIGHTED = frozenset("matmul bmm einsum".split())
_KEPT = frozenset("dropout nan_to_num to float type_as".split())  # between the softmax and the product
_MAX_LATER, _MAX_CALLS = 12, 8


@dataclass(frozen=True, slots=True)
class ScoreMask:
    """A mask that a call takes to hide scores, and the event that uses it."""

    mask: int
    before: int
    is_sure: bool  # what is hidden has no weight at all, not a small one
    attends: bool = False  # where the mask is True; else it hides there


def hiding_mask(facts: TraceIndex, call: Call) -> ScoreMask | None:
    """Returns the bools by which a call gives the scores of attention minus infinity, or nearly so."""
    mask = _filling_mask(facts, call)
    return mask if mask is not None and is_of_attention(facts, call) else None


def added_mask(facts: TraceIndex, call: Call) -> ScoreMask | None:
    """Returns the zeros and ones by which a sum adds a very low number to some scores of attention."""
    name = op_name(call)
    if name not in SUMS | _DIFFERENCES or len(call.inputs) != 2 or not is_of_attention(facts, call):
        return None
    places = [1] if name in _DIFFERENCES else [1, 0]
    found = (bias_mask(facts, call.inputs[place].tensor, call.index, name in _DIFFERENCES) for place in places)
    return next((mask for mask in found if mask is not None), None)


def bias_mask(facts: TraceIndex, number: int, before: int, is_taken_off: bool = False) -> ScoreMask | None:
    """Returns the mask that a tensor of very low numbers and zeros was made by; of very high ones if a call takes it
    off."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        name = op_name(made)
        if name in FILLS | _TRIANGLES:
            return None if is_taken_off else _of_bias(facts, made, number, before)
        if name in _PRODUCTS and len(made.inputs) == 1:
            factor = _factor(facts, made)
            is_low = factor is not None and (-factor if is_taken_off else factor) <= _HIDING
            return ScoreMask(made.inputs[0].tensor, made.index, is_sure=False) if is_low else None
        if name not in _PASSING or len(made.inputs) > 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _of_bias(facts: TraceIndex, made: Call, number: int, before: int) -> ScoreMask | None:
    """Returns the mask that fills zeros with a very low number, or the triangle of such numbers."""
    if op_name(made) in FILLS:
        mask = _filling_mask(facts, made)
        return mask if mask is not None and _is_zeros(facts, made, mask) else None
    base = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    value = None if base is None else full_of(facts, base)
    return ScoreMask(number, before, isinf(value)) if value is not None and value <= _HIDING else None


def _filling_mask(facts: TraceIndex, call: Call) -> ScoreMask | None:
    name, node = op_name(call), facts.node_at(call.site)
    value = filled_value(facts, call) if name in FILLS else None
    if value is None or value > _HIDING:
        return None
    if name == "where":
        return _of_choice(facts, call, isinf(value), node)
    if len(call.inputs) < 2 or (name == "setitem" and not _is_plain_item(facts, call)):
        return None
    mask = next((each.tensor for each in call.inputs[1:] if facts.tensor(each.tensor).dtype == "bool"), None)
    return None if mask is None else ScoreMask(mask, call.index, isinf(value))


def _of_choice(facts: TraceIndex, call: Call, is_sure: bool, node: ast.AST | None) -> ScoreMask | None:
    """Returns the mask of a `torch.where()` that takes scores, or a very low number."""
    if not isinstance(node, ast.Call) or len(node.args) + (call.op.startswith("Tensor.")) != 3:
        return None
    is_method = call.op.startswith("Tensor.")
    conditions = [each.tensor for each in call.inputs if facts.tensor(each.tensor).dtype == "bool"]
    if len(conditions) != 1:
        return None
    given = filling(facts, call)
    if given is None:
        is_last = written_number(facts, node.args[-1]) is not None
    else:
        others = [each.tensor for each in call.inputs if each.tensor != conditions[0]]
        is_last = given[0] == others[-1]
    return None if is_method and not is_last else ScoreMask(conditions[0], call.index, is_sure, attends=is_last)


def _is_plain_item(facts: TraceIndex, call: Call) -> bool:
    """Returns whether an assignment to items names whole dimensions and a mask only."""
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, ast.Subscript):
        return False
    indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    others = [each for each in indices[:-1] if not _is_whole(each)]
    return not others and not _is_whole(indices[-1])


def _is_whole(index: ast.expr) -> bool:
    is_slice = isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None
    return is_slice or (isinstance(index, ast.Constant) and index.value is Ellipsis)


def _is_zeros(facts: TraceIndex, made: Call, mask: ScoreMask) -> bool:
    """Returns whether what a mask fills with a very low number was made of zeros."""
    others = [access.tensor for access in made.inputs if access.tensor != mask.mask]
    makers = [next(iter(facts.producers(number, made.index)), None) for number in others]
    return any(maker is not None and op_name(maker) in ("zeros", "zeros_like", "new_zeros") for maker in makers)


def _factor(facts: TraceIndex, product: Call) -> float | None:
    node = facts.node_at(product.site)
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    return next((value for side in sides if (value := written_number(facts, side)) is not None), None)


def is_of_attention(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the next use of a result is a softmax along its last dimension, and that of the softmax the first
    factor of a product."""
    number, is_softmax = (call.outputs or call.inputs)[0].tensor, False
    for used in islice(facts.calls_between(call.index + 1), _MAX_LATER):
        if all(access.tensor != number for access in used.inputs) or not used.outputs:
            continue
        name = op_name(used)
        if is_softmax and name in _WEIGHTED:
            return used.inputs[0].tensor == number
        if name == "softmax":
            is_softmax = written_dimension(facts, used) == len(facts.tensor(number).shape) - 1
            if not is_softmax:
                return False
        elif not is_softmax or name not in _KEPT:
            return False
        number = used.outputs[0].tensor
    return False
