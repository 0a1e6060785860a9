"""Names state of a program's own optimizer that stays zero: a step computes its average, and does not keep it."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.optimizers.unwritten_states import unwritten_states
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in unwritten_states(training):
        yield stands_out(
            f"{as_written(facts, each.read)} reads the zeros that {as_written(facts, each.made)} has made for a "
            f"parameter {each.times:,} times: no call writes to them",
            facts.label("needed_here", each.read.site, "read here", each.read.index),
            facts.label("value_made_here", each.made.site, "made here", each.made.index),
        )
