"""Names models that are made once before a loop over folds, which trains and evaluates them in each fold."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.fold_loops import fold_loops
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in fold_loops(training):
        loop = each.loop
        end = loop.iter
        head = Span(each.file, loop.lineno, loop.col_offset, end.end_lineno or loop.lineno, end.end_col_offset or 0)
        owner = each.row.owner
        name = "".join(owner[: 2 if owner[:1] == ("self",) else 1])
        yield stands_out(
            f"`{name}` is made once before this loop over folds and goes on from each fold to the next: no line "
            "sets it back, and the later folds evaluate it on rows that earlier ones trained it on",
            Label("observed_here", head, "the loop over folds"),
            facts.label("value_made_here", each.made, "made here"),
            facts.label("needed_here", each.trained, "trained here"),
            facts.label("observed_here", each.evaluated.site, "evaluated here", each.evaluated.index),
        )
