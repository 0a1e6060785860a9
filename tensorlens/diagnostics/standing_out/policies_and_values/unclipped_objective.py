"""Names clipped policy objectives that take the greater of their two products where the lesser one is meant."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.clipped_objectives import unclipped_objectives
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in unclipped_objectives(training.training):
        taken, used = ("less", "adds") if each.sign > 0 else ("greater", "subtracts")
        yield stands_out(
            f"{as_written(facts, each.choice)} takes the {taken} of {named(facts, each.estimate, each.choice.index)} "
            f"times a ratio and times the clipped ratio, and the loss {used} it: the clip never acts on a ratio that "
            "has moved the way which lowers the loss",
            facts.label("needed_here", each.choice.site, f"takes the {taken}", each.choice.index),
            facts.label("observed_here", each.clip.site, "clipped here", each.clip.index),
        )
