"""Follows the root of a backward pass back through the arithmetic of the loss: elementwise operations and reductions.

The first operation that is none of these, such as a linear layer or `detach()`, ends the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from tensorlens.analysis.lineage import MAX_CALLS
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import LINEAR, MAX_PASSES, SUMS, op_name
from tensorlens.records.model import Backward, Call

_ARITHMETIC = frozenset((
    *SUMS, *LINEAR,
    "pow", "rpow", "square", "abs", "absolute", "exp", "log", "log1p", "log2", "expm1", "sqrt", "rsqrt", "reciprocal",
    "clamp", "clip", "clamp_min", "clamp_max", "where", "sigmoid", "logsigmoid", "tanh", "softplus", "relu", "cosh",
    "maximum", "minimum", "nansum", "nanmean", "norm", "vector_norm", "linalg_norm", "unsqueeze", "getitem", "dist",
    "masked_select", "masked_fill", "permute", "transpose", "t", "expand", "expand_as", "logsumexp", "max", "min",
    "xlogy", "lgamma", "broadcast_tensors", "kl_div", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "cross_entropy",
))  # fmt: skip
ERRORS = frozenset(("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"))
_POWERS = frozenset(("pow", "square"))
_MOST_OF_LINE = 4 * MAX_PASSES


def is_error(call: Call) -> bool:
    """Returns whether a call computes a square, or the distance of two values."""
    name, inputs = op_name(call), [access.tensor for access in call.inputs]
    is_square = name in ("mul", "rmul", "imul") and len(inputs) == 2 and inputs[0] == inputs[1]
    return name in ERRORS or name in _POWERS or is_square


def is_arithmetic(call: Call) -> bool:
    name = op_name(call)
    return name in _ARITHMETIC or name.endswith("_loss")


def loss_calls(facts: TraceIndex, backward: Backward) -> Iterator[Call]:
    """Yields the calls between the loss and what the model returned, the last first."""
    waiting, seen = [(root.tensor, backward.index) for root in backward.roots], set[int]()
    for number, before in waiting:
        call = next(iter(facts.producers(number, before)), None)
        if call is None or call.index in seen or len(seen) > MAX_CALLS or not is_arithmetic(call):
            continue
        seen.add(call.index)
        yield call
        waiting += [(access.tensor, call.index) for access in call.inputs]


def examined_passes(facts: TraceIndex, with_asked: bool = False) -> Iterator[Backward]:
    """Yields the passes that fill `.grad`, at most MAX_PASSES of one line for one loss of one model.

    A function that trains several models in turn, or one by several losses, has one line for all of them. With
    `with_asked`, also those of single numbers that return gradients, as in `torch.autograd.grad(loss, weights)` or
    `torch.func.grad()`.
    """
    counts, totals = Counter[tuple[int, int, int]](), Counter[int]()
    for backward in facts.backwards:
        place = _place(facts, backward)
        if counts[place] >= MAX_PASSES or totals[backward.site] >= _MOST_OF_LINE:
            continue
        counts[place] += 1
        totals[backward.site] += 1
        is_asked = backward.op == "autograd.grad"
        is_number = all(facts.tensor(root.tensor).shape == () for root in backward.roots)
        if not backward.failed and (not is_asked or (with_asked and is_number)):
            yield backward


def _place(facts: TraceIndex, backward: Backward) -> tuple[int, int, int]:
    """Returns the line of a pass, that of its loss, and the first leaf that gets a gradient."""
    roots = [root.tensor for root in backward.roots[:1]]
    made = next((call for root in roots for call in facts.producers(root, backward.index)[:1]), None)
    leaf = next((change.tensor for change in backward.gradients), -1)
    return backward.site, -1 if made is None else made.site, leaf


def recorded_above(facts: TraceIndex, backward: Backward) -> tuple[Call, ...]:
    """Returns the calls with a graph that the roots of a pass were computed by."""
    return _recorded_above(facts, backward.index)


@lru_cache(maxsize=128)  # several finders ask for the same passes
def _recorded_above(facts: TraceIndex, index: int) -> tuple[Call, ...]:
    backward = facts.event(index)
    roots = backward.roots if isinstance(backward, Backward) else ()
    return tuple(recorded_from(facts, [(root.tensor, index) for root in roots]))


def recorded_from(facts: TraceIndex, waiting: list[tuple[int, int]]) -> Iterator[Call]:
    """Yields the calls with a graph that some tensors were computed by, each given with the event that uses it."""
    seen = set[int]()
    for number, before in waiting:
        for call in facts.producers(number, before)[:1]:
            if call.index in seen or len(seen) > MAX_CALLS or call.nodes[1] <= call.nodes[0]:
                continue
            seen.add(call.index)
            yield call
            inputs = (access.tensor for access in call.inputs)
            waiting += [(number, call.index) for number in inputs if facts.requires_grad(number, call.index - 1)]
