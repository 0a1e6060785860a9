"""Names losses of distillation in which the temperature divides the scores of one of the two models only."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.temperatures import one_temperatures
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in one_temperatures(facts):
        side = "the trained scores" if each.is_student else "the scores of the target"
        other = "those of the target" if each.is_student else "the trained ones"
        yield stands_out(
            f"{as_written(facts, each.divided)} divides {side} by a temperature, and {other} are not divided by it "
            f"before {as_written(facts, each.loss)} compares the two distributions",
            facts.label("needed_here", each.loss.site, "compared here", each.loss.index),
            facts.label("value_made_here", each.divided.site, "divided here", each.divided.index),
            facts.label("observed_here", each.plain.site, "not divided here", each.plain.index),
        )
