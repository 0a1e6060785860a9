"""Names lines that clip or use gradients while they are multiplied by the scale of a `GradScaler`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.changed_gradients import is_clip
from tensorlens.analysis.training.gradients.scaled_gradients import scaled_gradients
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.observations import Step
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for found in scaled_gradients(training):
        scaled = facts.label("called_here", found.scaled.site, "multiplied by the scale", found.scaled.index)
        if isinstance(found.use, Step):
            text = f"`{found.use.op}()` uses gradients that a `GradScaler` has multiplied"
            text += ": neither its `step()` nor its `unscale_()` runs before"
            yield stands_out(text, facts.label("observed_here", found.use.site, "used here", found.use.index), scaled)
        else:
            verb = "clips" if is_clip(training, found.use.site) else "bounds"
            text = f"{as_written(facts, found.use)} {verb} gradients that a `GradScaler` has multiplied, before it"
            label = facts.label("observed_here", found.use.site, "clipped here", found.use.index)
            yield stands_out(f"{text} divides them again", label, scaled)
