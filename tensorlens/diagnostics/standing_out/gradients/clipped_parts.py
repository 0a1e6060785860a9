"""Names lines that clip or scale gradients after each of the backward passes that add up before a step."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.gradients.partial_clips import partial_clips
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in partial_clips(training):
        clip = each.clip.event
        assert isinstance(clip, Call)
        does = "clips sums of only some of the gradients that the step uses"
        if each.scales:
            does = "changes the gradients of the passes before each time"
        yield stands_out(
            f"{as_written(facts, clip)} runs between backward passes that add up before a step, {each.passes} in all: "
            f"it {does}",
            facts.label(
                "modified_here", clip.site, f"{'scales' if each.scales else 'clips'} a part of the sum", clip.index
            ),
            None if each.calling is None else facts.label("called_here", each.calling, "called here"),
            facts.label("accumulated_here", each.backward.site, "the gradients add up"),
            facts.label("needed_here", each.step.site, "the step"),
        )
