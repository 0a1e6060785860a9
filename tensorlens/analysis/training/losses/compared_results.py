"""Finds calls that compare each row of a result with the same row of another one, where both have a graph."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS, is_error
from tensorlens.analysis.training.pair_tables import has_unit_rows, made_by, shape_of
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_PRODUCTS = frozenset(("mul", "rmul"))
_DISTANCES = ERRORS | {"pairwise_distance", "cosine_embedding_loss"}
_OF_DIFFERENCES = frozenset("abs norm vector_norm".split())
_LAYERS = frozenset("linear conv1d conv2d conv3d addmm bilinear".split())
_KEPT = frozenset(
    "normalize softmax log_softmax sigmoid tanh relu gelu silu elu leaky_relu view reshape flatten squeeze unsqueeze "
    "contiguous clone float getitem chunk split mean div truediv mul layer_norm".split()
)
_SUMS = frozenset(("sum", "mean"))
_ONES = frozenset(("ones", "ones_like", "new_ones"))
_MOST_CALLS = 8


@dataclass(frozen=True, slots=True)
class Likeness:
    """The call that returns a similarity or a distance, the two results, and the call that reads them."""

    term: Call
    sides: tuple[int, int]
    read: Call
    is_distance: bool


def likeness_of(facts: TraceIndex, call: Call) -> Likeness | None:
    """Returns what a call compares. Both results have a graph, and neither is a parameter."""
    similar = _pair(facts, call)
    if similar is not None and _is_similarity(facts, call, similar):
        return Likeness(call, similar, call, False)
    read = call if op_name(call) in _DISTANCES else _difference(facts, call)
    pair = None if read is None else _pair(facts, read)
    if read is None or pair is None or not all(_is_of_layer(facts, each, read.index) for each in pair):
        return None
    is_known = op_name(call) != "cosine_embedding_loss" or _is_for_alike(facts, call)
    return Likeness(call, pair, read, True) if is_known else None


def _difference(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the difference that a call computes a size of: squares, a norm, or the root of a sum of squares."""
    is_size, made = False, call
    for _ in range(_MOST_CALLS):
        if op_name(made) == "sub":
            return made if is_size else None
        is_curve = is_error(made) or op_name(made) in _OF_DIFFERENCES
        if (not is_curve and op_name(made) not in (*_SUMS, "sqrt")) or (made is call and op_name(made) in _SUMS):
            return None
        is_size |= is_curve
        below = made_by(facts, made.inputs[0].tensor, made.index) if made.inputs else None
        if below is None:
            return None
        made = below
    return None


def _pair(facts: TraceIndex, call: Call) -> tuple[int, int] | None:
    """Returns the two results that a call reads, which have a graph and the same shape, and are no parameters."""
    given = list(dict.fromkeys(access.tensor for access in call.inputs))
    trained = [each for each in given if facts.requires_grad(each, call.index - 1)]
    if len(trained) != 2 or (len(call.inputs) != 2 and op_name(call) != "cosine_embedding_loss"):
        return None
    shape = shape_of(facts, trained[0])
    if len(shape) < 2 or shape != shape_of(facts, trained[1]):
        return None
    is_leaf = any(facts.is_leaf_requiring_grad(each, call.index - 1) for each in trained)
    return None if is_leaf else (trained[0], trained[1])


def _is_similarity(facts: TraceIndex, call: Call, pair: tuple[int, int]) -> bool:
    """Returns whether a call returns the cosine of two results, or the product of rows of length 1."""
    if op_name(call) == "cosine_similarity":
        return _is_along_last(facts, call)
    is_product = op_name(call) in _PRODUCTS or op_name(call) == "vecdot" or _is_row_product(facts, call)
    return is_product and all(has_unit_rows(facts, each, call.index) for each in pair)


def _is_row_product(facts: TraceIndex, call: Call) -> bool:
    """Returns whether an `einsum()` multiplies the elements of two tensors: `"nc,nc->n"`."""
    node = facts.node_at(call.site) if op_name(call) == "einsum" else None
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if not isinstance(given, ast.Constant):
        return False
    one, _, other = str(given.value).replace(" ", "").partition("->")[0].partition(",")
    return one == other != ""


def _is_along_last(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the dimension of a cosine, which is 1 if the source gives none, is the last one."""
    size, written = len(shape_of(facts, call.inputs[0].tensor)), written_call(facts, call)
    if written is None or not written.is_whole:
        return size == 2
    given = written.argument(0 if written.kind == "module" else 2, "dim")
    return (1 if given is None else written_number(facts, given)) in (-1, size - 1)


def _is_for_alike(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a `cosine_embedding_loss()` asks all pairs to be alike."""
    made = facts.creator(call.inputs[2].tensor)
    return made is not None and op_name(made) in _ONES


def _is_of_layer(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a result is that of a layer, but for its shape, an activation or its length.

    The layer can give the same for all samples. A result to which data is added, or that is a gradient, can't.
    """
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return False
        inputs = [access.tensor for access in made.inputs]
        if op_name(made) in _LAYERS:
            return any(facts.is_leaf_requiring_grad(each, made.index - 1) for each in inputs[1:])
        if op_name(made) not in _KEPT or (len(inputs) > 1 and not has_unit_rows(facts, number, before)):
            return False
        number, before = inputs[0], made.index
    return False
