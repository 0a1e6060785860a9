"""Names hinges of two distances whose margin is subtracted, or whose positive and negative are exchanged."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.pairs.hinges import wrong_hinges
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in wrong_hinges(training):
        code, label = as_written(facts, each.call), facts.label("needed_here", each.call.site, "here", each.call.index)
        if each.margin is None:
            text = (
                f"{code} is lower the nearer the pair of `{each.near}` is, and the farther apart that of `{each.far}`: "
                f"by these names, the pair of `{each.far}` should be the nearer one"
            )
        else:
            text = (
                f"{code} compares two distances with a margin of {each.margin:g}: it is 0 also where `{each.near}` is "
                f"on the wrong side of `{each.far}` by less than {-each.margin:g}, and asks for no gap between them"
            )
        yield stands_out(text, label)
