"""Finds sums over the edges of graphs whose weights are shared by all edges, or that give each node only itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.one_memory import elements
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_SUMS = frozenset("index_add scatter_add".split())
_SHAPING = frozenset("unsqueeze view reshape getitem squeeze expand expand_as contiguous dropout".split())
_QUOTIENTS = frozenset(("div", "truediv", "true_divide"))
_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_OF_ONE = _SHAPING | frozenset(
    "linear relu elu gelu silu tanh sigmoid leaky_relu softplus layer_norm batch_norm selu float to clone".split()
)
_READS = frozenset(("getitem", "index_select"))
_MATRICES = frozenset("index_put setitem sparse_coo_tensor sparse_csr_tensor tolist numpy".split())
_COUNTS = _SUMS | frozenset("bincount scatter_reduce scatter index_reduce".split())
FREE_OF_SCALE = frozenset("normalize cosine_similarity layer_norm rms_norm batch_norm group_norm argmax norm".split())
_PARTS = frozenset("unbind iter getitem select chunk split".split())
_MAX_STEPS, _MAX_USES = 8, 400


@dataclass(frozen=True, slots=True)
class SharedSoftmax:
    """A softmax over all edges, and the sum at the items of an index that reads it."""

    softmax: Call
    summed: Call
    edges: int
    nodes: int


@dataclass(frozen=True, slots=True)
class OwnRows:
    """A sum that adds the rows that one index takes to the places of the same index."""

    summed: Call
    taken: Call


def _sums(facts: TraceIndex) -> Iterator[tuple[Call, int, int]]:
    """Yields the first sum of each line at the items of an index, with the index and what is added."""
    seen = set[int]()
    for call in facts.calls:
        if op_name(call).rstrip("_") in _SUMS and len(call.inputs) == 3 and call.site not in seen:
            seen.add(call.site)
            _, index, added = (access.tensor for access in call.inputs)
            yield call, index, added


def shared_softmaxes(facts: TraceIndex) -> Iterator[SharedSoftmax]:
    """Yields these where the weights of the edges of several nodes, which a layer gives, have a sum of 1 together.

    Weights that are also summed for each node may be divided by that sum, and are left alone.
    """
    for call, _, added in _sums(facts):
        product = _maker(facts, added, call.index, _SHAPING)
        edges, nodes = facts.tensor(added).shape[:1], facts.tensor(call.inputs[0].tensor).shape[:1]
        if product is None or op_name(product) not in _PRODUCTS or not edges or nodes < (2,) or edges <= nodes:
            continue
        for access in product.inputs:
            made = _maker(facts, access.tensor, product.index, _SHAPING)
            if made is None or not _is_over(facts, made, edges) or not _is_of_features(facts, made, product):
                continue
            if not (_is_divided(facts, made, call) or _is_probability(facts, call) or _is_scaled(facts, call)):
                yield SharedSoftmax(made, call, edges[0], nodes[0])


def _is_of_features(facts: TraceIndex, softmax: Call, product: Call) -> bool:
    """Returns whether weights multiply rows of several numbers, and not one number for each weight."""
    weights, rows = (facts.tensor(call.outputs[0].tensor).shape for call in (softmax, product))
    return elements(rows) > elements(weights)


def _is_probability(facts: TraceIndex, summed: Call) -> bool:
    """Returns whether the program takes the logarithm of a sum, as of the probabilities of several sources."""
    known = {access.tensor for access in summed.outputs}
    for call in facts.calls_between(summed.index + 1, summed.index + _MAX_STEPS * 2):
        if any(access.tensor in known for access in call.inputs):
            if op_name(call) in ("log", "nll_loss"):
                return True
            if op_name(call) in _SHAPING | _PRODUCTS | {"add", "radd", "clamp", "t", "transpose", "gather"}:
                known |= {access.tensor for access in call.outputs}
    return False


def _is_scaled(facts: TraceIndex, summed: Call) -> bool:
    """Returns whether something gives each sum a length of its own, so that the sum of its weights has no effect."""
    known = {access.tensor for access in summed.outputs}
    for call in facts.calls_between(summed.index + 1, summed.index + _MAX_USES):
        if any(access.tensor in known for access in call.inputs):
            if op_name(call) in FREE_OF_SCALE:
                return True
            if op_name(call) in _SHAPING | {"t", "transpose"}:
                known |= {access.tensor for access in call.outputs}
    return False


def _is_over(facts: TraceIndex, made: Call, edges: tuple[int, ...]) -> bool:
    """Returns whether a softmax of trained scores, or a division by the sum of all, runs along all edges."""
    number = made.outputs[0].tensor
    shape = facts.tensor(number).shape
    if shape[:1] != edges or not facts.requires_grad(number, made.index):
        return False
    if op_name(made) == "softmax":
        return len(shape) == 1 or written_dimension(facts, made) == 0
    if op_name(made) not in _QUOTIENTS or len(made.inputs) != 2:
        return False
    divided, by = (access.tensor for access in made.inputs)
    total = _maker(facts, by, made.index, _SHAPING | {"add", "clamp"})
    is_whole = elements(facts.tensor(by).shape) == elements(shape[1:]) or not facts.tensor(by).shape
    return is_whole and total is not None and op_name(total) == "sum" and total.inputs[0].tensor == divided


def _is_divided(facts: TraceIndex, softmax: Call, summed: Call) -> bool:
    """Returns whether another call than products with rows, and views, reads the weights."""
    known = {softmax.outputs[0].tensor}
    for call in facts.calls_between(softmax.index + 1, softmax.index + _MAX_USES):
        if not any(access.tensor in known for access in call.inputs):
            continue
        if op_name(call) in _SHAPING:
            known |= {access.tensor for access in call.outputs}
        elif op_name(call) not in _PRODUCTS or call.index > summed.index:
            return True
    return False


def own_rows(facts: TraceIndex) -> Iterator[OwnRows]:
    """Yields these where the index is one of a pair, and nothing takes rows with the other one."""
    for call, index, added in _sums(facts):
        taken = _maker(facts, added, call.index, _OF_ONE - {"getitem"})
        if taken is None or op_name(taken) not in _READS or len(taken.inputs) != 2 or not _has_graph(facts, taken):
            continue
        rows, used = (access.tensor for access in taken.inputs)
        places = facts.tensor(call.inputs[0].tensor).shape[:1]
        if not _is_same(facts, used, index, call.index) or facts.tensor(rows).shape[:1] != places:
            continue
        if pair_of(facts, used) is not None and not is_other_read(facts, used):
            yield OwnRows(call, taken)


def _maker(facts: TraceIndex, number: int, before: int, passed: frozenset[str]) -> Call | None:
    """Returns the call that made a value, before those of some operations whose other inputs are parameters."""
    made = None
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) not in passed:
            return made
        others = [access.tensor for access in made.inputs[1:]]
        if not all(facts.is_leaf_requiring_grad(each, made.index) for each in others):
            return made
        number, before = made.inputs[0].tensor, made.index
    return made


def _is_same(facts: TraceIndex, one: int, other: int, before: int) -> bool:
    """Returns whether an index is another one, or that one made wider."""
    for _ in range(_MAX_STEPS):
        if one == other:
            return True
        made = next(iter(facts.producers(other, before)), None)
        if made is None or not made.inputs or op_name(made) not in _SHAPING or len(made.inputs) > 1:
            return False
        other, before = made.inputs[0].tensor, made.index
    return False


def pair_of(facts: TraceIndex, index: int) -> int | None:
    """Returns the tensor of which an index is one of two rows or columns."""
    made = facts.creator(index)
    if made is None or op_name(made) not in _PARTS or len(made.inputs) != 1:
        return None
    pair = made.inputs[0].tensor
    shape = facts.tensor(pair).shape
    return pair if len(shape) == 2 and 2 in shape and facts.tensor(index).shape == (shape[shape[0] == 2],) else None


def is_other_read(facts: TraceIndex, index: int) -> bool:
    """Returns whether the program takes rows of a table with the other index of the pair, or uses the pair as it is, or
    makes a matrix of it.

    The counts of the edges of each node are no rows.
    """
    pair = pair_of(facts, index)
    for call in facts.calls:
        name, is_part = op_name(call).rstrip("_"), op_name(call) in _PARTS and len(call.inputs) == 1
        if is_part or not call.inputs:
            continue
        table, *indices = (access.tensor for access in call.inputs)
        is_used = pair in (table, *indices)
        if is_used and (_has_graph(facts, call) or name in _MATRICES):
            return True
        others = [each for each in (table, *indices) if pair_of(facts, each) == pair]
        if any(not _is_equal_part(facts, each, index) for each in others):
            is_read = name in _READS and table not in others and not _is_count(facts, table, call.index)
            if name in _MATRICES or is_read or (name not in _SUMS and _has_graph(facts, call)):
                return True
    return False


def _is_count(facts: TraceIndex, table: int, before: int) -> bool:
    """Returns whether a table has one number for each node, and sums have made it."""
    made = (op_name(call).rstrip("_") for _, call in islice(ancestry(facts, table, before), _MAX_STEPS))
    return len(facts.tensor(table).shape) == 1 and not _COUNTS.isdisjoint(made)


def _has_graph(facts: TraceIndex, call: Call) -> bool:
    return any(facts.requires_grad(access.tensor, call.index) for access in call.outputs)


def _is_equal_part(facts: TraceIndex, one: int, other: int) -> bool:
    """Returns whether two indices are the same part of their pair."""
    places = _place(facts, one), _place(facts, other)
    return places[0] == places[1] is not None


def _place(facts: TraceIndex, index: int) -> int | None:
    """Returns whether an index is the first or the second part of its pair, where the source says so."""
    made = facts.creator(index)
    if made is None:
        return None
    if len(made.outputs) > 1:
        return [access.tensor for access in made.outputs].index(index)
    node = facts.node_at(made.site)
    indices = node.slice.elts if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else None
    given = [node.slice] if isinstance(node, ast.Subscript) and indices is None else indices or []
    numbers = [number for each in given if (number := written_number(facts, each)) is not None]
    return int(numbers[0]) % 2 if len(numbers) == 1 else None
