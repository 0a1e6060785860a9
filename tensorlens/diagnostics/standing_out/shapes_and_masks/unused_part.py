"""Names parts of a computed tensor that nothing reads, as one of the two that `chunk(2, dim=1)` returns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, ordinal
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_SPLITTING = frozenset(("chunk", "split", "split_with_sizes", "tensor_split"))
_MIN_RUNS = 2
_MOST = 8  # parts


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds parts that no call reads in any run of the line, while other parts are read each time."""
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches or not is_complete(facts.trace):
        return
    sites: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if op_name(call) in _SPLITTING and call.nodes[1] > call.nodes[0] and 1 < len(call.outputs) <= _MOST:
            sites[call.site].append(call)
    read = {access.tensor for call in facts.calls for access in call.inputs} if sites else set[int]()
    for calls in sites.values():
        if len(calls) < _MIN_RUNS or len({len(call.outputs) for call in calls}) != 1:
            continue
        unread = _unread(calls, read)
        leaves = graph_leaves(facts, calls[0].inputs[0].tensor, calls[0].index)
        rows = [row for row in training.rows if row.tensor in leaves and row.is_stepped]
        if rows and len(unread) == 1:
            yield stands_out(
                f"{as_written(facts, calls[0])} makes {len(calls[0].outputs)} parts of what is computed from "
                f"{listed(rows)}, and no line reads the {ordinal(unread[0] + 1)} one in any of its {len(calls):,} runs",
                facts.label("value_made_here", calls[0].site, "one of the parts is unused", calls[0].index),
            )


def _unread(calls: list[Call], read: set[int]) -> list[int]:
    """Returns the places of the parts that no run of a line has read; none if others were not read in each run."""
    counts = [sum(call.outputs[n].tensor in read for call in calls) for n in range(len(calls[0].outputs))]
    return [n for n, count in enumerate(counts) if not count] if set(counts) <= {0, len(calls)} else []
