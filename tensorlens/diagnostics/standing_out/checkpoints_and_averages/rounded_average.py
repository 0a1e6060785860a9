"""Names moving averages in half precision, whose numbers are too far apart for the small changes of an update."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.checkpoints_and_averages.moving_averages import MovingAverage, moving_averages
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut

_APART = {"bfloat16": 2**-7, "float16": 2**-10}  # the most that neighbours differ, of the lower one
_MIN_UPDATES = 20
_MOST = 0.1  # of the present weights that an update takes


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in moving_averages(training):
        if op_name(each.write) in ("copy", "set") and each.share is None:
            continue  # a copy of other weights, perhaps
        dtype = _dtype(facts, each)
        if dtype not in _APART or each.updates < _MIN_UPDATES or (each.share is not None and each.share > _MOST):
            continue
        made = facts.creator(each.target)
        low, high = (f"{100 * share:.2g}" for share in (_APART[dtype] / 2, _APART[dtype]))
        yield stands_out(
            f"{as_written(facts, each.write)} keeps an average in {dtype}, {named(facts, each.target)} for example: "
            f"numbers next to each other differ by {low} to {high} %, and each of {each.updates:,} updates loses "
            "changes of less than half of that",
            facts.label("modified_here", each.write.site, "updated here", each.write.index),
            None if made is None else facts.label("value_made_here", made.site, "made here", made.index),
        )


def _dtype(facts: TraceIndex, each: MovingAverage) -> str:
    """Returns the dtype of an average. The trace has the first one, which `module.to(dtype)` may have changed since."""
    sets = (call for call in facts.calls if call.op == DATA_SET and call.index < each.write.index)
    given = [call.inputs[1].tensor for call in sets if call.inputs[0].tensor == each.target and len(call.inputs) > 1]
    if given:
        return facts.tensor(given[-1]).dtype
    is_of_one = op_name(each.write) == "lerp" and len(each.write.inputs) > 1  # `lerp_` takes tensors of one dtype
    return facts.tensor(each.write.inputs[1].tensor if is_of_one else each.target).dtype
