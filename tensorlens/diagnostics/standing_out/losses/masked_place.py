"""Names losses of masked models that take the places which the model sees, or targets that the mask has changed."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.losses.masked_places import masked_places
from tensorlens.analysis.training.losses.targets_of_one import targets_of_one
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, named = training.facts, set[int]()
    for each in masked_places(facts):
        named.add(each.loss.site)
        hiding, chosen = as_written(facts, each.hiding), as_written(facts, each.chosen)
        if each.is_changed:
            yield stands_out(
                f"{hiding} changes the targets, too, which are in the same memory: at the places that {chosen} chooses "
                "for the loss, each target is the token that hides the place",
                facts.label("value_made_here", each.hiding.site, "the targets are changed here", each.hiding.index),
                facts.label("observed_here", each.chosen.site, "chosen here", each.chosen.index),
            )
            continue
        yield stands_out(
            f"{chosen} leaves the loss only places that the model sees: those that {hiding} hides do not count",
            facts.label("observed_here", each.chosen.site, "chosen here", each.chosen.index),
            facts.label("value_made_here", each.hiding.site, "hidden here", each.hiding.index),
        )
    for found in targets_of_one(facts):
        if found.loss.site not in named:
            yield stands_out(
                f"each target that {as_written(facts, found.loss)} counts, of {found.places:,} places, is "
                f"{found.target:,}, and the model is given {found.target:,} at these places and no others: the targets "
                "do not have the ids that it is to fill in",
                facts.label("value_made_here", found.made.site, "the targets are made here", found.made.index),
                facts.label("needed_here", found.loss.site, "the loss", found.loss.index),
            )
