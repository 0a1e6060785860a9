"""Names lines that overwrite parameters before anything reads what steps have made of them, or what was loaded."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.generated_values import generated_values
from tensorlens.analysis.training.parameters.lost_values import lost_loads, lost_steps
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    generated = {each.write.site for each in generated_values(training)}  # another sentence says so
    for each in lost_steps(training):
        if each.write.site in generated:
            continue
        group = each.rows[0].group
        yield stands_out(
            f"{as_written(facts, each.write)} overwrites {listed(each.rows)} after {each.lost} of {each.steps} steps, "
            "before anything reads what the steps have changed",
            facts.label("modified_here", each.write.site, "overwrites the parameter", each.write.index),
            None if group is None else facts.label("optimizer_made_here", group.site, "its optimizer is made here"),
        )
    for load in lost_loads(training):
        verb = "and other lines overwrite" if load.others else "overwrites"
        yield stands_out(
            f"{as_written(facts, load.write)} {verb} {load.lost} of {load.loaded} tensors that "
            f"{as_written(facts, load.load)} has loaded, before anything reads them",
            facts.label("modified_here", load.write.site, "overwrites what is loaded", load.write.index),
            facts.label("state_changed_here", load.load.site, "loaded here", load.load.index),
        )
