"""Names losses that ignore the end of sequences, because the padding has the same id."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.sequences_and_masks.shared_ids import shared_ids
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    for each in shared_ids(training.facts):
        hidden = "the loss ignores it" if each.is_loss else "a mask hides it from the loss"
        use = "puts into its sequences and looks for" if each.is_sought else "puts behind its sequences"
        yield stands_out(
            f"`{each.padding}` has the id of `{each.end}`, and {hidden}: no target is the end that the program {use}",
            Label("value_made_here", each.given, "the id is given here"),
            Label("needed_here", each.hidden, "ignored here" if each.is_loss else "compared here"),
        )
