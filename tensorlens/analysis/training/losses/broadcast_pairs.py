"""Finds operations of a loss that broadcast predictions and targets of the same size to a table of all pairs.

(n, 1) and (n,) have n elements each; their difference has n * n. A table that the script asks for is left out: then it
has given one of the operands a further dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product, zip_longest
from math import prod

from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls
from tensorlens.records.model import Backward, Call

_BROADCAST = "broadcast_tensors"  # distributions do so with their parameters and the value of `log_prob()`
_COMBINING = (
    "add", "radd", "iadd", "sub", "rsub", "isub", "mul", "rmul", "imul", "div", "truediv", "rtruediv", "true_divide",
    "maximum", "minimum", "pow", "kl_div", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss",
    "gaussian_nll_loss", "xlogy", _BROADCAST,
)  # fmt: skip
_INSERTING = ("unsqueeze", "getitem")  # give a tensor a further dimension, and do little else
_RESHAPING = ("view", "reshape")
_PICKING = ("gather", "take_along_dim")
_COMPARING = ("sub", "rsub", "isub", "kl_div", "binary_cross_entropy", "binary_cross_entropy_with_logits")
_STEPS = 20  # calls that keep the shape, back to the one that made it
_Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BroadcastPair:
    """A call that broadcast a prediction and a target, both with the same number of elements."""

    backward: Backward
    call: Call
    prediction: int
    target: int
    shape: _Shape  # of the table


def broadcast_pairs(facts: TraceIndex) -> Iterator[BroadcastPair]:
    """Yields these calls, each line once."""
    reported: set[tuple[str, int] | None] = set()
    for backward in examined_passes(facts, with_asked=True):
        calls = sorted(loss_calls(facts, backward), key=lambda call: call.index)
        for call in calls:
            span = facts.span(call.site)
            line = None if span is None else (span.file, span.line)
            found = None
            if line not in reported:
                found = _pair(facts, backward, call, calls) or _in_target(facts, backward, call, calls)
            if found is not None:
                reported.add(line)
                yield found


def _pair(facts: TraceIndex, backward: Backward, call: Call, calls: list[Call]) -> BroadcastPair | None:
    if op_name(call) not in _COMBINING:
        return None
    inputs = list(dict.fromkeys(access.tensor for access in call.inputs))
    history = [number for number in inputs if facts.requires_grad(number, call.index - 1)]
    predictions = [number for number in history if not facts.is_leaf_requiring_grad(number, call.index - 1)]
    targets = [number for number in inputs if number not in history and facts.tensor(number).type != "Parameter"]
    for prediction, target in product(predictions, targets):
        shape = _table(facts.tensor(prediction).shape, facts.tensor(target).shape)
        if shape is not None:
            found = BroadcastPair(backward, call, prediction, target, shape)
            return None if _is_meant(facts, found, calls) or _is_compared(facts, found, calls) else found
    return None


def _is_compared(facts: TraceIndex, pair: BroadcastPair, calls: list[Call]) -> bool:
    """Returns whether a table is compared with a target that has a row, or a number, for each of its rows: then it is a
    table of predictions, as of a grid of times, of quantiles or of draws that is as long as the batch."""
    prediction, given = (facts.tensor(number).shape for number in (pair.prediction, pair.target))
    wanted = {pair.shape, prediction} if len(prediction) > len(given) else {pair.shape}
    table, found = {access.tensor for access in pair.call.outputs}, False
    for call in calls:
        inputs = [access.tensor for access in call.inputs]
        if call.index <= pair.call.index or not table & set(inputs):
            continue
        if op_name(call) in _COMPARING or op_name(call).endswith("_loss"):
            others = [n for n in inputs if n not in table and not facts.requires_grad(n, call.index - 1)]
            found |= any(facts.tensor(number).shape in wanted for number in others)
        table |= {access.tensor for access in call.outputs if facts.tensor(access.tensor).shape == pair.shape}
    return found


def _in_target(facts: TraceIndex, backward: Backward, call: Call, calls: list[Call]) -> BroadcastPair | None:
    """Finds the table in the target itself: it is combined from (n,) and (n, 1), and the prediction has n elements."""
    if op_name(call) not in _COMBINING:
        return None
    inputs = list(dict.fromkeys(access.tensor for access in call.inputs))
    history = [number for number in inputs if facts.requires_grad(number, call.index - 1)]
    targets = [number for number in inputs if number not in history]
    for prediction, target in product(history, targets):
        made = _combined(facts, target, call.index)
        if made is None or len(made.inputs) < 2:
            continue
        one, other = (facts.tensor(access.tensor).shape for access in made.inputs[:2])
        shape = _table(one, other)
        is_same = facts.tensor(prediction).shape in (one, other)
        if shape is not None and is_same and not facts.same_line(made.site, call.site):
            found = BroadcastPair(backward, made, made.inputs[0].tensor, made.inputs[1].tensor, shape)
            return None if _is_meant(facts, found, [*calls, call]) else found
    return None


def _combined(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Finds the call that made a table of what it combines, back through calls that keep its shape."""
    shape = facts.tensor(number).shape
    for _ in range(_STEPS):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or facts.tensor(number).shape != shape:
            return None
        given = [access.tensor for access in call.inputs if facts.tensor(access.tensor).shape == shape]
        if op_name(call) in _COMBINING and not given:
            return call
        if not given:
            return None
        number, before = given[0], call.index
    return None


def _table(one: _Shape, other: _Shape) -> _Shape | None:
    """Returns the broadcast shape of two shapes that are the same but for ones, if it has more elements than they."""
    if len(one) == len(other) or [n for n in one if n != 1] != [n for n in other if n != 1]:
        return None
    pairs = list(zip_longest(reversed(one), reversed(other), fillvalue=1))
    if any(first != second and 1 not in (first, second) for first, second in pairs):
        return None
    shape = tuple(max(pair) for pair in reversed(pairs))
    return shape if prod(shape) > prod(one) else None


def _is_meant(facts: TraceIndex, pair: BroadcastPair, calls: list[Call]) -> bool:
    """Returns whether the script gave one of the operands a further dimension for this table.

    A target that gets one on another line, as data do, counts as meant if the table is used as such.
    """
    call = pair.call
    if op_name(call) == _BROADCAST and called_name(facts.node_at(call.site)) == _BROADCAST:
        return True
    made = _shaped_by(facts, pair.prediction, call)
    if made is not None and (op_name(made) in _INSERTING or facts.same_line(made.site, call.site)):
        return True
    made = _shaped_by(facts, pair.target, call)
    if made is None:
        return False
    return facts.same_line(made.site, call.site) or len(pair.shape) > 2 or not _is_reduced(facts, call, calls)


def _shaped_by(facts: TraceIndex, number: int, user: Call) -> Call | None:
    """Finds the call that gave a tensor, or what it was computed from element by element, a further dimension."""
    shape, before = facts.tensor(number).shape, user.index
    for _ in range(_STEPS):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or op_name(call) in _PICKING:
            return None  # the shape of an index says nothing about what is picked by it
        if op_name(call) in (*_INSERTING, *_RESHAPING) and call.inputs:
            return call if len(facts.tensor(call.inputs[0].tensor).shape) < len(shape) else None
        same = [access.tensor for access in call.inputs if facts.tensor(access.tensor).shape == shape]
        if not same:
            return None
        number, before = same[0], call.index
    return None


def _is_reduced(facts: TraceIndex, call: Call, calls: list[Call]) -> bool:
    """Returns whether a table is reduced to a single number at once, and not along a dimension."""
    table = {access.tensor for access in call.outputs}
    shape = facts.tensor(call.outputs[0].tensor).shape if call.outputs else ()
    for later in calls:
        if later.index > call.index and any(access.tensor in table for access in later.inputs):
            made = {facts.tensor(access.tensor).shape for access in later.outputs}
            if not made <= {shape, ()}:
                return False
            table |= {access.tensor for access in later.outputs if facts.tensor(access.tensor).shape == shape}
    return True
