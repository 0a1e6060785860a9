"""Names a temperature that is fitted on the rows that the model was trained on."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.fitted_scales import fitted_scales
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in fitted_scales(training):
        yield stands_out(
            f"{as_written(facts, each.loss)} fits `{each.row.name}` to the scores of {named(facts, each.data)}, on "
            f"which the model was trained by {as_written(facts, each.trained)}, and the model then runs on other data",
            facts.label("needed_here", each.loss.site, "fitted here", each.loss.index),
            facts.label("observed_here", each.trained.site, "trained here", each.trained.index),
            facts.label("observed_here", each.scored.site, "run on other data", each.scored.index),
        )
