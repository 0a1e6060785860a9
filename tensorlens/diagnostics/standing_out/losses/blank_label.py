"""Names CTC losses whose labels contain the blank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_call import written_call
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them by the labels that the first passes had, where a pass has one such loss."""
    facts, seen = training.facts, set[int]()
    backwards = {each.started: each for each in facts.backwards}
    for found in facts.trace.inspection.blank_labels:
        backward = backwards.get(found.index)
        calls = [] if backward is None else [
            call for call in recorded_above(facts, backward) if op_name(call) == "ctc_loss"
        ]  # fmt: skip
        if len(calls) != 1 or calls[0].site in seen:
            continue
        (call,) = calls
        seen.add(call.site)
        yield stands_out(
            f"{as_written(facts, call)} takes {found.blank} for the blank, and {found.blanks:,} of the "
            f"{found.labels:,} labels of a batch are {found.blank}, within the lengths that it is given: a decoder "
            "leaves the blank out, so it never gives this label",
            facts.label("needed_here", call.site, f"{found.blank} is the blank and a label", call.index),
            _module_of(facts, call, found.blank),
        )


def _module_of(facts: TraceIndex, loss: Call, blank: int) -> Label | None:
    """Returns the place of the module that computes a loss, which says what the blank is."""
    written = written_call(facts, loss)
    if written is None or written.kind != "module":
        return None
    for file, tree in facts.trees():
        if any(node is written.called for node in ast.walk(tree)):
            return Label("value_made_here", facts.span_of(written.called, file), f"its `blank` is {blank}")
    return None
