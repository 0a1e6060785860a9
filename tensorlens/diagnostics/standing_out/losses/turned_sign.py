"""Names losses that are subtracted although a gradient reversal turns their sign already."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.turned_signs import turned_signs
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in turned_signs(facts):
        loss, name = as_written(facts, each.loss), each.reversal.op.removesuffix(".apply")
        yield stands_out(
            f"{loss} is subtracted from what backward starts from, and `{name}` turns its gradient once more: what "
            f"comes before `{name}` is trained to lower this loss, and what comes after it to raise it",
            facts.label("needed_here", each.subtracted.site, "subtracted here", each.subtracted.index),
            facts.label("value_made_here", each.loss.site, "the loss", each.loss.index),
            facts.label("called_here", each.reversal.site, "turned here", each.reversal.index),
        )
