"""Finds out whether a tensor holds distances, or similarities, and of which tensors."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.value_ranges import is_scaled, is_zero_or_one
from tensorlens.records.model import Call

_KEPT = frozenset(
    "sum mean sqrt squeeze unsqueeze view reshape flatten gather diagonal diag masked_fill where clamp clamp_min "
    "amax amin max min getitem add radd topk sort masked_select".split()
)
_DISTANCES = frozenset("pairwise_distance cdist".split())
_SIMILARITIES = frozenset("cosine_similarity matmul mm bmm einsum".split())
_NORMS = frozenset("norm vector_norm linalg_norm pow square abs".split())
_VIEWS = frozenset("unsqueeze squeeze getitem view reshape expand transpose t T".split())
_LOOKUPS = frozenset("embedding getitem index_select".split())
_LAYERS = frozenset("linear embedding addmm matmul mm layer_norm batch_norm".split())
_ROWS = frozenset("normalize div truediv relu tanh gelu dropout mul detach clone".split())
_MAX_CALLS, _MOST_LOOKUPS = 10, 4


@dataclass(frozen=True, slots=True)
class Distance:
    """The tensors, or the rows looked up, that are compared. `sign` is 1 for their distance, -1 for a similarity."""

    sign: int
    operands: frozenset[object]


def distance_of(facts: TraceIndex, number: int, before: int) -> Distance | None:
    """Returns which tensors a tensor holds the distances or similarities of; None if it is not known to hold any."""
    sign, made, is_powered = 1, None, False
    for _ in range(_MAX_CALLS):
        after = made
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or made.writes:
            return None
        name, inputs = op_name(made), [access.tensor for access in made.inputs]
        if name in _DISTANCES:
            return Distance(sign, _operands(facts, inputs, made.index))
        if name in _SIMILARITIES:
            is_known = name == "cosine_similarity" or _are_rows_of_layers(facts, made)
            return Distance(-sign, _operands(facts, inputs, made.index)) if is_known and not is_powered else None
        if name in _NORMS or (name == "mul" and len(inputs) == 2 and inputs[0] == inputs[1]):
            difference = _difference(facts, inputs[0], made.index)
            if difference is not None:
                return Distance(sign, difference)
            if name not in ("pow", "square") or not _is_square(facts, made):
                return None
            is_powered = True
        elif name == "mul" and len(inputs) == 2 and (masked := _masked(facts, inputs, made.index)) is not None:
            number, before = masked, made.index
            continue
        elif name == "mul" and len(inputs) == 2:
            is_product = not is_powered and _is_scalar_product(facts, made, after)
            return Distance(-sign, _operands(facts, inputs, made.index)) if is_product else None
        elif name == "neg" or (name == "rsub" and len(inputs) == 1):
            sign = -sign
        elif (name not in _KEPT and not _is_scaled(facts, made)) or (name in ("add", "radd") and len(inputs) > 1):
            return None
        number, before = inputs[0], made.index
    return None


def _is_scalar_product(facts: TraceIndex, product: Call, after: Call | None) -> bool:
    """Returns whether a product of two rows, each a result of a layer, is summed along them. The product of a weight
    and a distance is no similarity."""
    shapes = [facts.tensor(access.tensor).shape for access in product.inputs]
    if after is None or op_name(after) not in ("sum", "mean") or not product.outputs or not all(shapes):
        return False
    shape = facts.tensor(product.outputs[0].tensor).shape
    is_summed = facts.tensor(after.outputs[0].tensor).shape in (shape[:-1], (*shape[:-1], 1))
    is_alike = len(shapes[0]) == len(shapes[1]) and shapes[0][-1] == shapes[1][-1] > 1
    return is_summed and is_alike and _are_rows_of_layers(facts, product)


def _are_rows_of_layers(facts: TraceIndex, product: Call) -> bool:
    return len(product.inputs) == 2 and all(_is_row_of_layer(facts, a.tensor, product.index) for a in product.inputs)


def _is_row_of_layer(facts: TraceIndex, number: int, before: int) -> bool:
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) not in _LAYERS | _VIEWS | _ROWS:
            return False
        if op_name(made) in _LAYERS:
            return True
        number, before = made.inputs[0].tensor, made.index
    return False


def _is_square(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call squares a tensor, or raises it to another power above 0 that the source says."""
    node = facts.node_at(call.site)
    power = node.args[-1] if isinstance(node, ast.Call) and node.args else None
    power = node.right if isinstance(node, ast.BinOp) else power
    is_above = isinstance(power, ast.Constant) and isinstance(power.value, int | float) and power.value > 0
    return op_name(call) == "square" or is_above


def _masked(facts: TraceIndex, inputs: list[int], before: int) -> int | None:
    """Returns the factor of a product whose other factor is a mask of zeros and ones."""
    return next((one for one, mask in (inputs, inputs[::-1]) if is_zero_or_one(facts, mask, before)), None)


def _is_scaled(facts: TraceIndex, call: Call) -> bool:
    return len(call.inputs) == 1 and is_scaled(facts, call)


def _difference(facts: TraceIndex, number: int, before: int) -> frozenset[object] | None:
    """Returns the two tensors of a difference."""
    made = next(iter(facts.producers(number, before)), None)
    if made is None or op_name(made) != "sub" or len(made.inputs) != 2:
        return None
    return _operands(facts, [access.tensor for access in made.inputs], made.index)


def _operands(facts: TraceIndex, numbers: list[int], before: int) -> frozenset[object]:
    return frozenset(_origin(facts, number, before, _MOST_LOOKUPS) for number in numbers)


def _origin(facts: TraceIndex, number: int, before: int, depth: int) -> object:
    """Returns what a tensor is a view of, or was looked up by: equal for two lookups of the same rows."""
    made = next(iter(facts.producers(number, before)), None)
    if made is None or not depth or not made.inputs:
        return number
    inputs = [_origin(facts, access.tensor, made.index, depth - 1) for access in made.inputs]
    if op_name(made) in _VIEWS and len(inputs) == 1:
        return inputs[0]
    return (op_name(made), *inputs) if op_name(made) in _LOOKUPS and len(inputs) > 1 else number
