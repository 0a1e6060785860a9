"""Names masks of padding that multiply the weights of attention after the softmax: the rest does not sum to 1."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.padding_masks import padding_places
from tensorlens.analysis.training.sequences_and_masks.score_masks import FILLS, SUMS
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_WEIGHTED = frozenset("matmul bmm einsum".split())
_KEPT = frozenset("dropout to float type_as contiguous".split())
_MAX_LATER, _MAX_CALLS = 12, 6


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        lookups = [call for call in above if op_name(call) == "embedding" and len(call.inputs) > 1]
        for call in above:
            found = _found(facts, call, lookups) if op_name(call) in _PRODUCTS and call.site not in reported else None
            if found is None:
                continue
            reported.add(call.site)
            softmax, mask = found
            labels = [
                facts.label("value_made_here", call.site, "masked after the softmax", call.index),
                facts.label("observed_here", softmax.site, "the softmax", softmax.index),
            ]
            yield stands_out(
                f"{as_written(facts, call)} multiplies the weights of a softmax by the mask "
                f"{named(facts, mask, call.index)}, which sets those of the padding to 0: the others of a row have a "
                "sum below 1, and nothing divides them by it",
                *labels[: 1 if facts.same_line(call.site, softmax.site) else 2],
            )


def _found(facts: TraceIndex, call: Call, lookups: list[Call]) -> tuple[Call, int] | None:
    """Returns the softmax whose weights a call multiplies by a mask of padding, and the mask."""
    numbers = [access.tensor for access in call.inputs]
    for weights, mask in (numbers, numbers[::-1]) if len(numbers) == 2 else ():
        softmax = next(iter(facts.producers(weights, call.index)), None)
        if softmax is None or op_name(softmax) != "softmax" or facts.requires_grad(mask, call.index - 1):
            continue
        shape, whole = facts.tensor(mask).shape, facts.tensor(weights).shape
        is_along = len(whole) > 2 and written_dimension(facts, softmax) == len(whole) - 1
        if not is_along or not shape or shape[-1] != whole[-1] or (len(shape) > 1 and shape[-2] not in (1, whole[-2])):
            continue
        is_of_padding = padding_places(facts, (mask, call.index), lookups) == whole[-1]
        if is_of_padding and not _is_masked(facts, softmax) and _is_used(facts, call):
            return softmax, mask
    return None


def _is_masked(facts: TraceIndex, softmax: Call) -> bool:
    """Returns whether a call before the softmax changes single scores, as a mask does."""
    number, before = softmax.inputs[0].tensor, softmax.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) in _WEIGHTED:
            return False
        if op_name(made) in FILLS | SUMS | _PRODUCTS and len(made.inputs) > 1:
            return True
        number, before = made.inputs[0].tensor, made.index
    return True


def _is_used(facts: TraceIndex, call: Call) -> bool:
    """Returns whether only a product with values reads masked weights."""
    numbers, uses = {access.tensor for access in call.outputs}, 0
    for used in islice(facts.calls_between(call.index + 1), _MAX_LATER):
        read = [access.tensor for access in used.inputs]
        if numbers.isdisjoint(read):
            continue
        if op_name(used) in _WEIGHTED and read[0] in numbers:
            uses += 1
        elif op_name(used) in _KEPT:
            numbers |= {access.tensor for access in used.outputs}
        else:
            return False
    return uses == 1
