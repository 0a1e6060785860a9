"""Names lines that detach a state at each step of a loop, so that no gradient goes back further than one step."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.cut_graphs.detached_states import detached_states
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in detached_states(training.training):
        where = "before one backward pass, whose graph has only the last step"
        label = "the pass of the last step" if each.is_read_last else "one pass for all steps"
        where = where if each.is_read_last else "in the graph of one backward pass"
        yield stands_out(
            f"{as_written(facts, each.cut)} cuts a state off at each step of a loop, {each.count} times {where}: no "
            "gradient goes back through it to an earlier step",
            facts.label("graph_cut_here", each.cut.site, "cut at each step", each.cut.index),
            facts.label("needed_here", each.backward.site, label),
        )
