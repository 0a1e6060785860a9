"""Names lines that give parameters the memory that they have already, where they should give them earlier values."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.training.changed_in_place.idle_restores import idle_restores
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds `p.data = backup[name]`, where `backup[name] = p.data` is no copy."""
    facts = training.facts
    for each in idle_restores(facts, training.training.stepped):
        span = facts.span(each.call.site)
        statement = None if span is None else statement_at(facts, span.file, span.line)
        if span is None or statement is None:
            continue
        yield stands_out(
            f"`{facts.code_of(statement, span.file)}` restores nothing: what it assigns has shared the memory of "
            f"{named(facts, each.call.inputs[0].tensor, each.call.index)} all the time, also while "
            f"{as_written(facts, each.change)} changed it",
            facts.label("modified_here", each.call.site, "assigns the memory that is there already", each.call.index),
            facts.label("shared_here", each.made.site, "kept here, without a copy", each.made.index),
            facts.label("modified_here", each.change.site, "changes both", each.change.index),
        )
