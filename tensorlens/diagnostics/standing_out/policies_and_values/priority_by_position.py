"""Names new priorities that a line writes to the first places of a table, not to those that were drawn."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.policies_and_values.replay_priorities import priorities_by_position
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or not training.training.steps:
        return
    for each in priorities_by_position(facts):
        write = " ".join(facts.code_of(each.write, each.file).split())
        draw = " ".join(facts.code_of(each.draw, each.draw_file).split())
        yield stands_out(
            f"`{write}` writes to the first places of a table, whatever the places are that `{draw}` has drawn by its "
            f"values: it does not read `{each.places}`",
            Label("value_made_here", facts.span_of(each.write, each.file), "written by position"),
            Label("observed_here", facts.span_of(each.draw, each.draw_file), "the places are drawn"),
        )
