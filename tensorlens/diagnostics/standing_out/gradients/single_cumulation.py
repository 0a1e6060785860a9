"""Names `logcumsumexp` along a dimension of one element, as of a column of risks: it changes nothing.

`risks.exp().cumsum(1).log()` is the same in three calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.log_sums import is_of_logs
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_CUMULATIVE = frozenset(("logcumsumexp",))  # a `cumsum` may be of as many elements as a setting says, once of one
_MIN_RUNS = 2


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    lines: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        is_cumulative = op_name(call) in _CUMULATIVE or (op_name(call) == "cumsum" and is_of_logs(facts, call))
        if is_cumulative and call.nodes[1] > call.nodes[0] and not call.within:
            lines[call.site].append(call)
    for site, calls in lines.items():
        if len(calls) >= _MIN_RUNS and all(_is_along_one(facts, call) for call in calls):
            shape = facts.tensor(calls[-1].inputs[0].tensor).shape
            yield stands_out(
                f"{as_written(facts, calls[-1])} runs along a dimension of one element in each of {len(calls):,} runs, "
                f"of the shape {shape}: it changes no value",
                facts.label("value_made_here", site, "adds up one element", calls[-1].index),
            )


def _is_along_one(facts: TraceIndex, call: Call) -> bool:
    shape, dimension = facts.tensor(call.inputs[0].tensor).shape, written_dimension(facts, call)
    return dimension is not None and shape[dimension] == 1 and prod(shape) > 1
