"""Names modules that change their argument in place, where the function that called them reads it again."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.changed_arguments import changed_arguments
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, op_text
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a residual connection that adds the changed values, and its like."""
    facts = training.facts
    for each in changed_arguments(training.training):
        text = f"{as_written(facts, each.change)} changes `{each.name}` in place, by {op_text(each.change.op)}: "
        text += f"{as_written(facts, each.reader)} then reads the changed values"
        yield stands_out(
            text,
            facts.label("modified_here", each.change.site, f"changes `{each.name}`", each.change.index),
            facts.label("needed_here", each.reader.site, "reads the changed values", each.reader.index),
            None if each.made is None else Label("called_here", each.made, "made to work in place"),
            None if each.given is None else Label("called_here", each.given, "given to it, without a copy"),
        )
