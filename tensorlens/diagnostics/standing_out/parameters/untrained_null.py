"""Names guidance whose id for "no class" has a row that training never reaches, or that a class has as well."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.guided_results import guidance_without_training
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in guidance_without_training(training):
        weight, null = named(facts, each.weight, each.lookup.index), as_written(facts, each.null)
        labels = [
            facts.label("value_made_here", each.null.site, "the id is given here", each.null.index),
            facts.label("observed_here", each.difference.site, "the difference", each.difference.index),
            facts.label("observed_here", each.lookup.site, "looked up in training", each.lookup.index),
        ]
        given = next(iter(facts.producers(each.lookup.inputs[0].tensor, each.lookup.index)), None)
        if given is not None:
            labels.append(facts.label("observed_here", given.site, "the ids in training", given.index))
        if each.drawn is None:
            text = (
                f"{null} gives the id {each.row} to all rows for {as_written(facts, each.difference)}, and row "
                f"{each.row} of {weight} never had a gradient: no step has trained it"
            )
        else:
            text = (
                f"{null} gives the id {each.row} to all rows that should have no class for "
                f"{as_written(facts, each.difference)}, and {as_written(facts, each.drawn)} draws {each.row} as a class"
            )
        yield stands_out(text, *labels)
