"""Finds masked scores that a softmax gives a weight all the same: the mask sets them to a number near others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.value_ranges import RESHAPING, SAME_VALUES, ZEROS, is_count, is_written_between
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Backward, Call

_SOFTMAX = frozenset(("softmax", "log_softmax"))
FILLS = frozenset(("masked_fill", "where", "setitem"))
# what reads weights to take masked ones out, or to normalise
_CHOOSING = FILLS | frozenset("div truediv masked_select index_select logsumexp".split())
_ONE_NUMBER = frozenset("tensor full full_like new_full".split())
_PRODUCTS = frozenset(("mul", "imul"))
_WEIGHING = _PRODUCTS | frozenset("rmul matmul rmatmul bmm mm mv dot einsum baddbmm".split())
_SAME_WEIGHTS = frozenset("dropout log clamp add radd to float type_as contiguous clone".split())
_DRAWS = frozenset("rand rand_like bernoulli".split())
_OF_ONE = frozenset("lt gt le ge logical_not invert rsub sub".split())  # of a tensor and a number
_LOWEST = -10.0  # with others near 0, a score below has a weight of less than 5e-5
_MAX_DEPTH, _MAX_CALLS = 8, 200


@dataclass(frozen=True, slots=True)
class CountedMask:
    """A softmax, and the call that sets the masked ones of its scores."""

    fill: Call
    value: float
    softmax: Call
    backward: Backward


def counted_masks(facts: TraceIndex) -> Iterator[CountedMask]:
    """Yields these, one for each line that masks."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) not in _SOFTMAX or not call.inputs:
                continue
            fill = _fill(facts, call)
            if fill is None or fill.site in reported:
                continue
            value = filled_value(facts, fill)
            if (
                value is not None
                and value > _LOWEST
                and _masks(facts, fill, call)
                and not _is_chosen(facts, call, backward)
                and (value != 0 or _weighs(facts, call, backward))
            ):
                reported.add(fill.site)
                yield CountedMask(fill, value, call, backward)


def _fill(facts: TraceIndex, softmax: Call) -> Call | None:
    """Returns the call that has masked what a softmax takes, directly before it."""
    number, before = softmax.inputs[0].tensor, softmax.index
    for _ in range(_MAX_DEPTH):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or op_name(call) not in SAME_VALUES or not call.inputs:
            return call if call is not None and op_name(call) in FILLS | _PRODUCTS else None
        number, before = call.inputs[0].tensor, call.index
    return None


def filled_value(facts: TraceIndex, fill: Call) -> float | None:
    """Returns the number that a call sets masked scores to, as the script writes it."""
    if op_name(fill) in _PRODUCTS:
        return 0.0
    span = facts.span(fill.site)
    node = None if span is None else facts.names.syntax.node(span)
    given = filling(facts, fill)
    if span is None or given is not None:
        return None if given is None else given[1]
    if op_name(fill) == "setitem":
        statement = statement_around(facts, span)
        return written_number(facts, statement.value) if isinstance(statement, ast.Assign) else None
    return _argument(facts, node, op_name(fill)) if isinstance(node, ast.Call) else None


def masked_inputs(facts: TraceIndex, fill: Call) -> list[int]:
    """Returns the scores and the mask of a call, and whatever else it takes but a tensor of one number."""
    given = filling(facts, fill)
    return [access.tensor for access in fill.inputs if given is None or access.tensor != given[0]]


def filling(facts: TraceIndex, fill: Call) -> tuple[int, float] | None:
    """Returns the tensor of one number that a call sets masked scores to, as `zeros_like(scores)`, and the number."""
    if op_name(fill) not in ("where", "masked_fill") or len(fill.inputs) < 3:
        return None
    for number in (access.tensor for access in fill.inputs[1 if op_name(fill) == "where" else 2 :]):
        made = facts.creator(number)
        span = None if made is None else facts.span(made.site)
        node = None if span is None else facts.names.syntax.node(span)
        if made is None or is_written_between(facts, number, made, fill.index):
            continue
        name = op_name(made)
        value = 0.0 if name in ZEROS else None
        if name in _ONE_NUMBER and isinstance(node, ast.Call) and node.args:
            value = written_number(facts, node.args[0 if name == "tensor" else -1])
        if value is not None:
            return number, value
    return None


def _argument(facts: TraceIndex, node: ast.Call, name: str) -> float | None:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called.strip("_") != name:
        return None
    given = [*node.args, *(each.value for each in node.keywords if each.arg in ("value", "other"))]
    numbers = [written_number(facts, each) for each in given]
    return next((number for number in reversed(numbers) if number is not None), None)


def _masks(facts: TraceIndex, fill: Call, softmax: Call) -> bool:
    """Returns whether a call masks some scores of a row, by a mask that does not depend on the model.

    A mask of whole rows gives padding some value. One that depends on the scores may take out NaN. Scores that were
    masked before may be given a value again where a whole row is masked.
    """
    numbers = masked_inputs(facts, fill)
    scores = next((number for number in numbers if facts.requires_grad(number, fill.index - 1)), None)
    masks = [number for number in numbers if number != scores and not facts.requires_grad(number, fill.index - 1)]
    if scores is None or len(numbers) != 2 or len(masks) != 1:
        return False
    (mask,) = masks
    if len(facts.tensor(mask).shape) < 2 and filled_value(facts, fill) == 0:
        return False  # one choice among others may have the score 0, by definition
    is_mask = facts.tensor(mask).dtype == "bool" or (op_name(fill) in _PRODUCTS and is_count(facts, mask, fill.index))
    if not is_mask or not _is_along(facts, mask, softmax) or _is_meant(facts, fill, scores, mask):
        return False
    before = next(iter(facts.producers(scores, fill.index)), None)
    if before is not None and op_name(before) in FILLS:
        return False
    return not depends_on_model(facts, mask, fill.index)


def _is_meant(facts: TraceIndex, fill: Call, scores: int, mask: int) -> bool:
    """Returns whether scores of 0 are part of a model: one weight for counts, one alternative of each row as the
    reference of a choice, or a dropout of scores, whose mask is drawn for nothing else."""
    shape = facts.tensor(scores).shape
    if op_name(fill) in _PRODUCTS and prod(shape) == 1:
        return True
    number, before = mask, fill.index
    for _ in range(_MAX_DEPTH):
        made = next(iter(facts.producers(number, before)), None)
        if made is None:
            return False
        name, inputs = op_name(made), [access.tensor for access in made.inputs]
        if name == "one_hot":
            return filled_value(facts, fill) == 0
        if name in _DRAWS:
            times = made.index, fill.index
            return facts.tensor(number).shape == shape and _is_only_for(facts, number, *times)
        if len(inputs) != 1 or name not in RESHAPING | _OF_ONE:
            return False
        number, before = inputs[0], made.index
    return False


def _is_only_for(facts: TraceIndex, drawn: int, since: int, until: int) -> bool:
    """Returns whether values were drawn after the last backward pass, and one chain of calls only uses them."""
    if any(since < backward.index < until for backward in facts.backwards):
        return False
    chain, calls = {drawn}, 0
    for call in facts.calls_between(since + 1):
        if not chain & {access.tensor for access in call.inputs}:
            continue
        calls += 1
        if call.index > until:
            return False
        if call.index < until:
            if op_name(call) not in RESHAPING | _OF_ONE:
                return False
            chain |= {access.tensor for access in call.outputs}
    return calls > 0


def depends_on_model(facts: TraceIndex, mask: int, before: int) -> bool:
    """Returns whether a mask was computed from something with a graph, as that of the values below a threshold is."""
    made = (call for _, call in ancestry(facts, mask, before, _MAX_CALLS))
    return any(facts.requires_grad(access.tensor, call.index - 1) for call in made for access in call.inputs)


def _is_along(facts: TraceIndex, mask: int, softmax: Call) -> bool:
    """Returns whether a mask has several places along the dimension of a softmax."""
    shape, scores = facts.tensor(mask).shape, facts.tensor(softmax.inputs[0].tensor).shape
    span = facts.span(softmax.site)
    node = None if span is None else facts.names.syntax.node(span)
    dimension: float | None = -1.0
    if span is not None and isinstance(node, ast.Call):
        named = [each.value for each in node.keywords if each.arg == "dim"]
        given = named or [each for each in node.args if written_number(facts, each) is not None]
        dimension = written_number(facts, given[0]) if given else -1.0
    if dimension is None or dimension != int(dimension) or not -len(scores) <= dimension < len(scores):
        return False
    place = int(dimension) - len(scores) if dimension >= 0 else int(dimension)
    return len(shape) >= -place and shape[place] == scores[place] > 1


def _weighs(facts: TraceIndex, softmax: Call, backward: Backward) -> bool:
    """Returns whether weights multiply something else, as the values of attention.

    Else they are the probabilities of a choice, in which an option may have the score 0 by definition.
    """
    if op_name(softmax) == "log_softmax":
        return False
    weights = {access.tensor for access in softmax.outputs}
    for call in facts.calls_between(softmax.index + 1, backward.index):
        read = [access.tensor for access in call.inputs]
        if not weights & set(read):
            continue
        if op_name(call) in _WEIGHING and len(read) > 1 and not set(read) <= weights:
            return True
        if op_name(call) in RESHAPING | _SAME_WEIGHTS:
            weights |= {access.tensor for access in call.outputs}
    return False


def _is_chosen(facts: TraceIndex, softmax: Call, backward: Backward) -> bool:
    """Returns whether a later call takes masked weights out: a mask again, or a new sum."""
    weights = {access.tensor for access in softmax.outputs}
    for call in facts.calls_between(softmax.index + 1, backward.index):
        read = [access.tensor for access in call.inputs]
        if not weights & set(read):
            continue
        name = op_name(call)
        others = [number for number in read if number not in weights]
        if name in _CHOOSING or (
            name in _PRODUCTS | {"einsum"} and not all(facts.requires_grad(n, call.index - 1) for n in others)
        ):
            return True
        if name == "getitem" and others:
            return True
        if name in RESHAPING or name == "dropout":
            weights |= {access.tensor for access in call.outputs}
    return False
