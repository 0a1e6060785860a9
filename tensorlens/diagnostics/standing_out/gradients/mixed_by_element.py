"""Names points of a gradient penalty that a random number for each element mixes of two samples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.penalized_gradients import asked_gradient, compared_norm, gradient_below
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_DRAWS = frozenset("rand rand_like uniform".split())
_PRODUCTS = frozenset(("mul", "rmul"))
_COPIES = frozenset("detach clone requires_grad to float".split())
_NOISE = _DRAWS | frozenset("randn randn_like normal".split())
_MAX_COPIES = 4
_MOST_ABOVE, _MOST_LATER = 200, 200


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them by the two factors `e` and `1 - e`, or by `a + e * (b - a)`."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for compared in recorded_above(facts, backward):
            taken = compared_norm(facts, compared)
            made = None if taken is None else gradient_below(facts, taken)
            gradient = None if made is None else asked_gradient(facts, made)
            for access in gradient.inputs[1:] if gradient is not None else ():
                mixed = _mixed(facts, access.tensor, gradient.index)  # type: ignore[union-attr]
                if mixed is None or mixed[0].site in reported:
                    continue
                call, draw = mixed
                reported.add(call.site)
                shape = facts.tensor(call.outputs[0].tensor).shape
                yield stands_out(
                    f"{as_written(facts, call)} mixes two samples by another random number for each of the "
                    f"{prod(shape[1:]):,} elements, which {as_written(facts, draw)} draws: the points that "
                    f"{as_written(facts, compared)} is about are not on the straight lines between the samples",
                    facts.label("value_made_here", draw.site, "drawn for each element", draw.index),
                    facts.label("observed_here", call.site, "mixed here", call.index),
                    facts.label("needed_here", compared.site, "the penalty", compared.index),
                )


def _mixed(facts: TraceIndex, number: int, before: int) -> tuple[Call, Call] | None:
    """Returns the sum that mixes two samples, and the draw of the shares."""
    made = next(iter(facts.producers(number, before)), None)
    for _ in range(_MAX_COPIES):
        if made is None or op_name(made) not in _COPIES or not made.inputs:
            break
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    if made is None or not made.inputs or not made.outputs:
        return None
    inputs = [access.tensor for access in made.inputs]
    shape = facts.tensor(made.outputs[0].tensor).shape
    draws = [_factors(facts, each, made.index) for each in inputs]
    if op_name(made) == "lerp" and len(inputs) == 3:
        found = _drawn(facts, inputs[2], made.index)
    elif op_name(made) in ("add", "radd") and len(inputs) == 2:
        found = next((draw for one in draws[0] for other in draws[1] if (draw := _shared(one, other))), None)
        steps = (_step(facts, made, each, 1 - place) for place, each in enumerate(inputs))
        found = found or next((each for each in steps if each is not None), None)
    else:
        found = None
    is_full = found is not None and facts.tensor(found.outputs[0].tensor).shape == shape
    is_mixture = found is not None and is_full and prod(shape[1:]) > 1 and _are_two_samples(facts, made)
    return (made, found) if found is not None and is_mixture else None


def _are_two_samples(facts: TraceIndex, mixed: Call) -> bool:
    """Returns whether the sides of a mixture are two samples: a sample and the same with noise, or noise, are not."""
    shape = facts.tensor(mixed.outputs[0].tensor).shape
    above = list[set[int]]()
    for number in _sides(facts, mixed):
        made = next(iter(facts.producers(number, mixed.index)), None)
        if made is not None and op_name(made) in _NOISE and not _is_given_to_layer(facts, number, made):
            return False
        known = {number} | {
            access.tensor for _, call in ancestry(facts, number, mixed.index, _MOST_ABOVE) for access in call.inputs
        }
        above.append({each for each in known if facts.tensor(each).shape == shape})
    return len(above) == 2 and not above[0] & above[1]


def _is_given_to_layer(facts: TraceIndex, number: int, draw: Call) -> bool:
    """Returns whether a layer with weights is given what a call draws, as it is given samples."""
    for call in islice(facts.calls_between(draw.index + 1), _MOST_LATER):
        inputs = [access.tensor for access in call.inputs]
        if number in inputs and any(facts.is_leaf_requiring_grad(each, call.index - 1) for each in inputs):
            return True
    return False


def _sides(facts: TraceIndex, mixed: Call) -> list[int]:
    """Returns what a mixture takes its shares of."""
    if op_name(mixed) == "lerp":
        return [access.tensor for access in mixed.inputs[:2]]
    found = list[int]()
    for place, access in enumerate(mixed.inputs):
        made = next(iter(facts.producers(access.tensor, mixed.index)), None)
        if made is None or not _factors(facts, access.tensor, mixed.index):
            found.append(access.tensor)
            continue
        for each in made.inputs:
            way = next(iter(facts.producers(each.tensor, made.index)), None)
            is_step = way is not None and op_name(way) == "sub" and len(way.inputs) == 2
            if way is not None and is_step and way.inputs[1].tensor == mixed.inputs[1 - place].tensor:
                found.append(way.inputs[0].tensor)
            elif way is None or op_name(way) not in _DRAWS | {"rsub"}:
                found.append(each.tensor)
    return found


_Factor = tuple[Call, bool]  # a draw, and whether 1 minus it is the factor


def _shared(one: _Factor, other: _Factor) -> Call | None:
    return one[0] if one[0] is other[0] and one[1] is not other[1] else None


def _factors(facts: TraceIndex, number: int, before: int) -> list[_Factor]:
    """Returns the draws that a product has as factors."""
    made = next(iter(facts.producers(number, before)), None)
    if made is None or op_name(made) not in _PRODUCTS:
        return []
    found = list[_Factor]()
    for access in made.inputs:
        rest = next(iter(facts.producers(access.tensor, made.index)), None)
        is_rest = rest is not None and op_name(rest) == "rsub" and len(rest.inputs) == 1
        source, limit = (rest.inputs[0].tensor, rest.index) if rest and is_rest else (access.tensor, made.index)
        draw = _drawn(facts, source, limit)
        found += [] if draw is None else [(draw, is_rest)]
    return found


def _step(facts: TraceIndex, added: Call, product: int, start: int) -> Call | None:
    """Returns the draw of `a + e * (b - a)`."""
    factors = _factors(facts, product, added.index)
    made = next(iter(facts.producers(product, added.index)), None)
    for access in made.inputs if made is not None and len(factors) == 1 and not factors[0][1] else ():
        way = next(iter(facts.producers(access.tensor, added.index)), None)
        is_way = way is not None and op_name(way) == "sub" and len(way.inputs) == 2
        if way is not None and is_way and way.inputs[1].tensor == added.inputs[start].tensor:
            return factors[0][0]
    return None


def _drawn(facts: TraceIndex, number: int, before: int) -> Call | None:
    made = next(iter(facts.producers(number, before)), None)
    return made if made is not None and op_name(made) in _DRAWS and made.outputs else None
