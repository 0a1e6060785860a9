"""Names an index that takes the last time step of padded sequences: `states[:, -1]` is padding for the shorter ones.

It also names the last state of a recurrent layer that has run over the padding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.padded_runs import PaddedRun, padded_runs, takes_last
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_PAD = "pad_packed_sequence"
_SAME_ROWS = frozenset("dropout layer_norm relu tanh gelu to contiguous".split())
_MAX_CALLS = 6
_VALUE_PLACE = 2  # of the arguments of `pad_packed_sequence`


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            padded = _padded(facts, call) if op_name(call) == "getitem" and call.site not in reported else None
            if padded is None:
                continue
            reported.add(call.site)
            packed, (rows,) = padded.inputs[0].tensor, facts.tensor(padded.outputs[1].tensor).shape
            steps = prod(facts.tensor(padded.outputs[0].tensor).shape[:2]) // rows
            yield stands_out(
                f"{as_written(facts, call)} takes the last of {steps:,} time steps of each of {rows:,} sequences, and "
                f"`pad_packed_sequence()` has zeros there for those that are shorter: the sequences have "
                f"{facts.tensor(packed).shape[0]:,} time steps in all, of {rows * steps:,}",
                facts.label("value_made_here", call.site, "padding for shorter sequences", call.index),
                facts.label("observed_here", padded.site, "padded here", padded.index),
            )

    yield from map(partial(_run, facts), padded_runs(facts))


def _run(facts: TraceIndex, run: PaddedRun) -> StandingOut:
    return stands_out(
        f"{as_written(facts, run.layer)} runs over {run.steps:,} time steps of each sequence, and "
        f"{as_written(facts, run.padded)} leaves padding at the end of {run.shorter:,} of {run.rows:,}: their last "
        "state comes after the padding",
        facts.label("value_made_here", run.layer.site, "runs over the padding", run.layer.index),
        facts.label("needed_here", run.use.site, "the last state is used here", run.use.index),
        facts.label("observed_here", run.padded.site, "padded here", run.padded.index),
    )


def _padded(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the call that padded the sequences of which an index takes the last time step, if some are shorter."""
    sorted_after: list[Call] = []
    for _, made in islice(ancestry(facts, call.inputs[0].tensor, call.index), _MAX_CALLS):
        if op_name(made) == _PAD and len(made.outputs) == 2:
            shape, rows = facts.tensor(made.outputs[0].tensor).shape, facts.tensor(made.outputs[1].tensor).shape
            is_short = facts.tensor(made.inputs[0].tensor).shape[0] < prod(shape[:2])
            times = [1 - place for place, size in enumerate(shape[:2]) if (size,) == rows]
            is_zero = all(facts.same_line(each.site, made.site) for each in sorted_after) and _pads_zeros(facts, made)
            return made if is_short and is_zero and len(times) == 1 and takes_last(facts, call, times[0]) else None
        if op_name(made) == "index_select":
            sorted_after.append(made)  # `pad_packed_sequence()` does so itself
        elif op_name(made) not in _SAME_ROWS:
            return None
    return None


def _pads_zeros(facts: TraceIndex, padded: Call) -> bool:
    """Returns whether the source gives `pad_packed_sequence()` no other value for the padding."""
    node = facts.node_at(padded.site)
    if not isinstance(node, ast.Call):
        return False
    given = [each.value for each in node.keywords if each.arg == "padding_value"] or node.args[_VALUE_PLACE:][:1]
    return not given or written_number(facts, given[0]) == 0
