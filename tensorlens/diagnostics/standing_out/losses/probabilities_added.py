"""Names mixtures and distributions that are given the result of a softmax where they take logarithms."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.added_probabilities import added_probabilities
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in added_probabilities(training.training):
        code = as_written(facts, each.taking)
        text = f"{code} takes scores as `logits`, and is given the result of a softmax: probabilities in place of "
        if each.is_mixture:
            text = f"{code} sums what it is given as logarithms, and one summand is the result of a softmax: "
            text += "probabilities are added to logarithms of densities in place of "
        yield stands_out(
            text + "their logarithms",
            facts.label("needed_here", each.taking.site, "takes logarithms", each.taking.index),
            facts.label("value_made_here", each.made.site, "the softmax", each.made.index),
        )
