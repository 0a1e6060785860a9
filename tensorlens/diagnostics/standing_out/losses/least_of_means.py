"""Names a loss that takes the less of two means, where each element has two values: one choice for all of them.

So it is in a permutation-invariant loss and in a clipped policy objective, if the mean comes before the minimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS, examined_passes, is_error, recorded_above, recorded_from
from tensorlens.analysis.training.losses.compared_numbers import has_rows_of_samples, lesser_in_source, lesser_of
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_LEAST, _MOST = frozenset(("minimum", "min", "amin")), frozenset(("maximum", "max", "amax"))
_JOINS = frozenset(("stack", "hstack"))
_MEANS = frozenset(("mean", "sum"))
_KEEPING = frozenset("neg mul rmul div truediv add sub rsub".split())
_CHOOSING = frozenset("getitem index_select masked_select chunk split unbind select".split())
_PRODUCTS = frozenset(("mul", "rmul"))
_REDUCTIONS = frozenset("mean sum norm vector_norm logsumexp amax max".split())
_CLIPS = frozenset(("clamp", "clip"))
_MAX_CALLS = 6


@dataclass(frozen=True, slots=True)
class _Mean:
    call: Call
    sources: tuple[int, ...]  # tensors
    elements: int


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        for call in above:
            is_least = op_name(call) in _LEAST
            pair = _pair(facts, call) if is_least or op_name(call) in _MOST else None
            if pair is None and op_name(call) == "where":
                is_least, pair = True, lesser_of(facts, call)
            if pair is not None and call.site not in reported and not _runs_again(call, above):
                yield from _found(facts, call, pair, reported, "takes the less" if is_least else "takes the greater")
        for call, pair in lesser_in_source(facts, backward):
            chosen = [each for each in (_mean(facts, number, call.index) for number in pair) if each is not None]
            used = [each.call for each in chosen if each.call in above]
            if call.site not in reported and len(used) == 1 and not _runs_again(used[0], above):
                yield from _found(facts, call, pair, reported, "chooses the less")


def _found(
    facts: TraceIndex, call: Call, pair: tuple[int, int], reported: set[int], does: str
) -> Iterator[StandingOut]:
    one, other = (_mean(facts, each, call.index) for each in pair)
    if one is None or other is None or one.call is other.call or one.elements != other.elements:
        return
    if op_name(one.call) != op_name(other.call) or not _are_of_one(facts, one, other, clipped=does.endswith("greater")):
        return
    reported.add(call.site)
    yield stands_out(
        f"{as_written(facts, call)} {does} of two numbers, each a "
        f"{op_name(one.call)} over {one.elements:,} elements: one choice for all of them, and not one for each",
        facts.label("value_made_here", call.site, "compared here", call.index),
        facts.label("observed_here", one.call.site, "one number from here on", one.call.index),
        facts.label("observed_here", other.call.site, "one number from here on", other.call.index),
    )


def _pair(facts: TraceIndex, call: Call) -> tuple[int, int] | None:
    """Returns the two numbers that a call compares, also where it is given both in one tensor."""
    numbers = [access.tensor for access in call.inputs]
    made = next(iter(facts.producers(numbers[0], call.index)), None) if len(numbers) == 1 else None
    if made is not None and op_name(made) in _JOINS and not facts.tensor(call.outputs[0].tensor).shape:
        numbers = [access.tensor for access in made.inputs]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _mean(facts: TraceIndex, number: int, before: int) -> _Mean | None:
    """Returns the mean or sum that a single number is, but for a factor or an offset."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or facts.tensor(number).shape or not made.inputs:
            return None
        source = made.inputs[0].tensor
        if op_name(made) in _MEANS | ERRORS:
            elements = prod(facts.tensor(source).shape)
            own = [a.tensor for a in made.inputs if facts.requires_grad(a.tensor, made.index - 1)]
            return _Mean(made, tuple(own), elements) if elements > 1 else None
        if op_name(made) not in _KEEPING or len(made.inputs) != 1:
            return None
        number, before = source, made.index
    return None


def _runs_again(call: Call, above: tuple[Call, ...]) -> bool:
    """Returns whether a line runs several times for one pass, as for one sample after the other."""
    return sum(each.site == call.site and each.op == call.op for each in above) > 1


def _are_of_one(facts: TraceIndex, one: _Mean, other: _Mean, *, clipped: bool) -> bool:
    """Returns whether two means are of values that are computed from one result, without choosing a part of it.

    The values are of samples: reduced for each, or a clipped factor of a policy objective, or errors of a clipped
    prediction, as a maximum asks for.
    """
    first, second = (
        {
            call.index: call
            for call in (each.call, *recorded_from(facts, [(number, each.call.index) for number in each.sources]))
        }
        for each in (one, other)
    )
    common = first.keys() & second.keys()
    parts = [[call for index, call in each.items() if index not in common] for each in (first, second)]
    own = [*parts[0], *parts[1]]
    if not common or any(_takes_part(facts, call) for call in own):
        return False
    clips = {access.tensor for call in own if op_name(call) in _CLIPS for access in call.outputs}
    if any(op_name(call) in _PRODUCTS and clips & {access.tensor for access in call.inputs} for call in own):
        return True
    if clipped:
        return _is_clipped_error(facts, parts)
    if any(_is_of_samples(facts, call) for call in own):
        return True
    return has_rows_of_samples(facts, [first[index] for index in common], parts)


def _takes_part(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call takes a part of its input: one that takes all of it, as `out[:, [1, 0]]`, does not."""
    sizes = [prod(facts.tensor(access.tensor).shape) for access in (*call.inputs[:1], *call.outputs[:1])]
    return op_name(call) in _CHOOSING and (len(sizes) != 2 or sizes[1] != sizes[0])


def _is_clipped_error(facts: TraceIndex, parts: list[list[Call]]) -> bool:
    """Returns whether both means are of the errors of one prediction for the same target, and one of them clips it."""
    clipping = [any(op_name(call) in _CLIPS for call in part) for part in parts]
    targets = [
        {a.tensor for call in part for a in call.inputs if not facts.requires_grad(a.tensor, call.index - 1)}
        for part in parts
    ]
    are_errors = all(any(map(is_error, part)) for part in parts)
    return are_errors and sorted(clipping) == [False, True] and bool(targets[0] & targets[1])


def _is_of_samples(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call reduces the last dimensions of its input, and not the first."""
    before = facts.tensor(call.inputs[0].tensor).shape if call.inputs else ()
    after = facts.tensor(call.outputs[0].tensor).shape if call.outputs else ()
    return op_name(call) in _REDUCTIONS and len(after) > 0 and before[:1] == after[:1] and prod(after) < prod(before)
