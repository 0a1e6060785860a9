"""Names terms that are added to all scores of a row alike, so that the softmax of the row does not depend on them."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.cancelled_terms import cancelled_terms
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in cancelled_terms(facts):
        term, shape = facts.tensor(each.term), facts.tensor(each.sum.outputs[0].tensor).shape
        yield stands_out(
            f"{as_written(facts, each.sum)} changes all scores along dimension {each.dim} of {shape} by one number, "
            f"because {named(facts, each.term, each.sum.index)} has shape {term.shape}: that does not change the "
            "softmax along that dimension",
            facts.label("value_made_here", each.sum.site, "added here", each.sum.index),
            facts.label("needed_here", each.softmax.site, "the softmax", each.softmax.index),
        )
