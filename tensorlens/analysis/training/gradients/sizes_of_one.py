"""Finds dimensions of one element that a setting makes: another number of components is possible, too."""

from __future__ import annotations

import ast
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_MOST_CALLS = 12
_LAYERS = frozenset("linear conv1d conv2d".split())
_PRODUCTS = frozenset("matmul bmm baddbmm einsum".split())
_MADE_BY_HAND = frozenset("unsqueeze getitem sum mean amax amin max min norm topk select narrow reshape".split())


def size_of_layer(facts: TraceIndex, call: Call) -> ast.expr | None:
    """Returns what the source gives as the number of results of the layer that runs in a call."""
    weight = facts.creator(call.inputs[1].tensor)
    node = None if weight is None else facts.node_at(weight.site)
    if not isinstance(node, ast.Call):
        return None
    sizes = [each.value for each in node.keywords if each.arg in ("out_features", "out_channels")]
    return next(iter(sizes or node.args[1:2]), None)


def is_of_setting(facts: TraceIndex, value: int, before: int) -> bool:
    """Returns whether the program may set how many elements a dimension of a value has, which has one here.

    A name gives the size of the layer that made the elements, as `nn.Linear(8, k)`, or they are scores of a query for
    as many keys as the data have, as those of a sequence of one.
    """
    is_of_scores = False
    for _, made in islice(ancestry(facts, value, before), _MOST_CALLS):
        name = op_name(made)
        if name in _MADE_BY_HAND:
            return False
        if name in _LAYERS and len(made.inputs) > 1 and facts.tensor(made.inputs[1].tensor).shape[:1] == (1,):
            size = size_of_layer(facts, made)
            return size is not None and not isinstance(size, ast.Constant)
        leaves = (access.tensor for access in made.inputs)
        is_layer = any(facts.is_leaf_requiring_grad(each, made.index - 1) for each in leaves)
        is_of_scores |= name in _PRODUCTS and len(made.inputs) > 1 and not is_layer
    return is_of_scores
