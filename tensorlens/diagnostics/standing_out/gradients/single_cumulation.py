"""Names `logcumsumexp` along a dimension of one element, as of a column of risks: it changes nothing.

`risks.exp().cumsum(1).log()` is the same in three calls.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.sizes_of_one import size_of_layer
from tensorlens.analysis.training.log_sums import is_of_logs
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_CUMULATIVE = frozenset(("logcumsumexp",))  # a `cumsum` may be of as many elements as a setting says, once of one
_MIN_RUNS = 2
_MAX_CALLS = 12


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    lines: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        is_cumulative = op_name(call) in _CUMULATIVE or (op_name(call) == "cumsum" and is_of_logs(facts, call))
        if is_cumulative and call.nodes[1] > call.nodes[0] and not call.within:
            lines[call.site].append(call)
    for site, calls in lines.items():
        is_along_one = len(calls) >= _MIN_RUNS and all(_is_along_one(facts, call) for call in calls)
        if is_along_one and not _is_of_setting(facts, calls[-1]):
            shape = facts.tensor(calls[-1].inputs[0].tensor).shape
            yield stands_out(
                f"{as_written(facts, calls[-1])} runs along a dimension of one element in each of {len(calls):,} runs, "
                f"of the shape {shape}: it changes no value",
                facts.label("value_made_here", site, "adds up one element", calls[-1].index),
            )


def _is_along_one(facts: TraceIndex, call: Call) -> bool:
    shape, dimension = facts.tensor(call.inputs[0].tensor).shape, written_dimension(facts, call)
    return dimension is not None and shape[dimension] == 1 and prod(shape) > 1


def _is_of_setting(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a name gives the size of the layer that made the elements, as `nn.Linear(8, classes - 1)`: a
    setting may make it one."""
    for _, made in islice(ancestry(facts, call.inputs[0].tensor, call.index), _MAX_CALLS):
        if op_name(made) == "linear" and len(made.inputs) > 1:
            size = size_of_layer(facts, made)
            return size is not None and not isinstance(size, ast.Constant)
    return False
