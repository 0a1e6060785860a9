"""Names evaluations on a part of a data set of which a backward pass has used many samples."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.samples.evaluated_again import draws_of_parts, evaluated_again
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in evaluated_again(training):
        draws = [
            facts.label("value_made_here", call.site, "split here", call.index) for call in draws_of_parts(facts, each)
        ]
        yield stands_out(
            f"{each.again:,} of {each.evaluated:,} samples that are evaluated had been trained on: both parts are of "
            "one data set, and share as many as two random draws do",
            *draws[-2:],
            facts.label("observed_here", each.site, "evaluated here"),
            facts.label("needed_here", each.trained_site, "trained here"),
        )
