"""Names counts that correct averages, and that count parameters, or begin anew with each epoch."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.optimizers.correction_counts import CorrectionCount, correction_counts
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import one_line


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    seen = set[object]()
    for each in correction_counts(training):
        if each.loop not in seen:
            seen.add(each.loop)
            yield _of_parameters(each) if each.parameters else _of_epochs(each)


def _of_parameters(each: CorrectionCount) -> StandingOut:
    return stands_out(
        f"`{one_line(each.count_text, 40)}` counts parameters, and not steps: it runs for each of {each.parameters} in "
        f"a step, and `{one_line(each.correction_text, 40)}` corrects averages by it",
        Label("state_changed_here", each.count, "counts here"),
        Label("needed_here", each.correction, "corrected here"),
        Label("observed_here", each.loop, "the loop over the parameters"),
    )


def _of_epochs(each: CorrectionCount) -> StandingOut:
    return stands_out(
        f"`{one_line(each.correction_text, 40)}` corrects averages as if they began with each epoch: "
        f"`{one_line(each.count_text, 40)}` counts the batches of one epoch, and the averages go on",
        Label("needed_here", each.correction, "corrected here"),
        Label("state_changed_here", each.count, "counts here"),
        Label("observed_here", each.loop, "begins again here"),
    )
