"""Names points of a gradient penalty that a random number for each element mixes of two samples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.gradients.mixed_points import MixedPoint, mixed_point
from tensorlens.analysis.training.gradients.penalized_gradients import compared_norm, gradient_below, points_of
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.taken_norms import TakenNorm
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them where the norm of the gradient at such points is compared with a number."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts, with_asked=True):
        for compared in recorded_above(facts, backward):
            taken = compared_norm(facts, compared)
            made = None if taken is None else gradient_below(facts, taken)
            for number, before in points_of(facts, made) if made is not None else ():
                mixed = mixed_point(facts, number, before)
                if mixed is None or mixed.call.site in reported or not _differ(facts, taken, mixed):
                    continue
                call, draw = mixed.call, mixed.draw
                reported.add(call.site)
                is_each = mixed.shares == prod(facts.tensor(call.outputs[0].tensor).shape[1:])
                shares = f"another random number for each of the {mixed.shares:,} elements"
                shares = shares if is_each else f"{mixed.shares:,} random numbers in each sample"
                yield stands_out(
                    f"{as_written(facts, call)} mixes two samples by {shares}, which {as_written(facts, draw)} draws: "
                    "the points that "
                    f"{as_written(facts, compared)} is about are not on the straight lines between the samples",
                    facts.label("value_made_here", draw.site, "drawn for each element", draw.index),
                    facts.label("observed_here", call.site, "mixed here", call.index),
                    facts.label("needed_here", compared.site, "the penalty", compared.index),
                )


def _differ(facts: TraceIndex, taken: TakenNorm | None, mixed: MixedPoint) -> bool:
    """Returns whether the shares differ along the dimensions that a norm is of, whichever of these it may be."""
    whole = facts.tensor(mixed.call.outputs[0].tensor).shape
    if taken is None or facts.tensor(taken.value).shape != whole or not taken.call.outputs:
        return taken is not None
    kept, places = facts.tensor(taken.call.outputs[0].tensor).shape, range(len(whole))
    for count in range(1, len(whole) + 1):
        for axes in combinations(places, count):
            ones = tuple(1 if place in axes else size for place, size in enumerate(whole))
            rest = tuple(size for place, size in enumerate(whole) if place not in axes)
            is_one = prod(whole[place] for place in axes) == 1  # of one number each: its sample is in the last
            own = mixed.shape[-1] if is_one else prod(mixed.shape[place] for place in axes)
            if kept in (ones, rest) and own == 1:
                return False
    return True
