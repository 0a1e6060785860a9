"""Names lines that change gradients in vain: after the step that used them, before backward has filled them, or those
that no step uses."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.changed_gradients import gradient_changes, idle_clips
from tensorlens.analysis.training.gradients.measuring_clips import only_measures
from tensorlens.analysis.training.gradients.scaled_gradients import SCALER_STEP
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    lines: set[object] = set()
    for change in gradient_changes(training):
        span = facts.span(change.call.site)
        line = change.call.site if span is None else (span.file, span.line)
        skipped = (call for call in facts.calls if call.op == SCALER_STEP) if change.is_unused else ()
        is_skipped = any(access.tensor in change.leaves for call in skipped for access in call.inputs)
        is_vain = change.is_late or (change.is_unused and not is_skipped)
        if is_vain and line not in lines and not only_measures(facts, change.call.site):
            lines.add(line)
            text = f"{as_written(facts, change.call)} writes to gradients "
            if change.is_late:
                text += "only after the step that used them, and no other step uses them"
            else:
                whose = listed([row for row in training.rows if row.tensor in change.leaves])
                text += f"that no step uses: those of {whose or 'these leaves'} are cleared before"
            yield stands_out(text, facts.label("modified_here", change.call.site, "changed here", change.call.index))
    for call, are_zeros in idle_clips(training):
        what = "only gradients of zeros" if are_zeros else "no gradient"
        label = facts.label("observed_here", call.site, "clipped here", call.index)
        first = next((each for each in facts.backwards if each.index > call.index and not each.failed), None)
        filled = None if first is None else facts.label("needed_here", first.site, "backward fills them later")
        yield stands_out(f"{as_written(facts, call)} finds {what} each time that it runs", label, filled)
