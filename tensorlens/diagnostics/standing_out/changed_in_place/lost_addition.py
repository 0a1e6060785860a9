"""Names statements as `x[index] += y` that add only one of several values where the index is repeated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.naming.code_text import change_text
from tensorlens.analysis.training.changed_in_place.lost_additions import lost_additions
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in lost_additions(facts):
        counts, span = each.counts, facts.span(each.call.site)
        statement = None if span is None else statement_around(facts, span)
        text = f"`{change_text(statement)}`" if isinstance(statement, ast.AugAssign) else as_written(facts, each.call)
        yield stands_out(
            f"{text} adds one value to each item, also where its index is repeated: "
            f"{counts.repeated:,} of {counts.places:,} values are lost. `index_add_()` adds all",
            facts.label("modified_here", each.call.site, "written here", each.call.index),
        )
