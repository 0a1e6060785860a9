"""Names moving averages that take nearly all of the present weights at each update."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.blends import copied_tensor
from tensorlens.analysis.training.checkpoints_and_averages.moving_averages import MovingAverage, moving_averages
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut

_LEAST = 0.9  # of the present weights


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in moving_averages(training):
        if each.share is None or not _LEAST <= each.share < 1 or _begins_with_target(training, each):
            continue
        share, rest = f"{each.share:.4%}".rstrip("0%").rstrip("."), f"{1 - each.share:.4%}".rstrip("0%").rstrip(".")
        code, target = as_written(facts, each.write), named(facts, each.target)
        value = facts.creator(each.write.inputs[-1].tensor) if op_name(each.write) == "copy" else None
        yield stands_out(
            f"{code} takes {share} % of the present weights at each of {each.updates:,} updates and keeps {rest} % of "
            f"what {target} had before: an average over many steps does the opposite",
            facts.label("modified_here", each.write.site, "updated here", each.write.index),
            None
            if value is None or facts.same_line(value.site, each.write.site)
            else facts.label("value_made_here", value.site, "computed here", value.index),
        )


def _begins_with_target(training: MeasuredTraining, average: MovingAverage) -> bool:
    """Returns whether lines copy the average to the trained parameters, as where each task begins with it: the share is
    then that of the way to the weights of one task."""
    facts, own = training.facts, training.facts.storages_of(average.target)
    return any(
        op_name(call) in ("copy", "set") and call.inputs
        and facts.storage_of(copied_tensor(facts, call.inputs[-1].tensor, call.index), call.index) in own
        for call in training.writes(average.source, since=0)
    )  # fmt: skip
