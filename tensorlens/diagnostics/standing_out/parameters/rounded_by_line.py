"""Names lines that round trained parameters between their steps, so that small updates are lost."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.rounded_writes import rounded_writes
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in rounded_writes(training):
        verb = "rounds" if len(each.rows) == 1 else "rounds the values of"
        group = each.rows[0].group
        yield stands_out(
            f"{as_written(facts, each.write)} {verb} {listed(list(each.rows))} {each.times:,} times in {each.steps:,} "
            "steps, and no copy keeps the exact values: a step that changes a value by less than half the distance of "
            "two levels changes nothing",
            facts.label("modified_here", each.write.site, "rounded here", each.write.index),
            facts.label("optimizer_made_here", None if group is None else group.site, "stepped by this optimizer"),
        )
