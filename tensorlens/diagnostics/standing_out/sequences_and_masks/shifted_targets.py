"""Names losses of a language model whose targets are shifted by one step twice."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.shifted_twice import shifted_twice
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in shifted_twice(facts):
        yield stands_out(
            f"{as_written(facts, each.second)} leaves out the first step of the targets, and "
            f"{as_written(facts, each.first)} begins one step after what the model is given already: each prediction "
            "is compared with the token that is two steps later",
            facts.label("value_made_here", each.second.site, "shifted here", each.second.index),
            facts.label("observed_here", each.first.site, "shifted before", each.first.index),
        )
