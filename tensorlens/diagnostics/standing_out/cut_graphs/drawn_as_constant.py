"""Names draws from a distribution that a loss uses as constants, while it trains the distribution by another way."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.cut_graphs.drawn_constants import drawn_constants
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in drawn_constants(training.training):
        rows = [row for row in training.rows if row.tensor in each.trained]
        if each.passes_zeros:
            rows = [row for row in rows if not row.is_zero]
        if rows:
            draw = as_written(facts, each.draw)
            if each.passes_zeros:
                text = f"{draw} passes only zeros on to {listed(rows)}, whose gradients all come another way"
            else:
                text = f"what {draw} draws enters the loss as a constant, although it is drawn with "
                text += f"{listed(rows)}, which the run trains"
            yield stands_out(
                text,
                facts.label("graph_cut_here", each.draw.site, "the gradient stops here", each.draw.index),
                facts.label("needed_here", each.backward.site, "backward"),
            )
