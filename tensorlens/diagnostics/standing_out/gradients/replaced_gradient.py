"""Names lines that set the gradient of parameters several times for one step, as for each task of a batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.training.gradients.replaced_gradients import ReplacedGradient, replaced_gradients
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, lines = training.facts, defaultdict[tuple[int, int], list[ReplacedGradient]](list)
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in replaced_gradients(training.training):
        lines[each.setting.site, each.count].append(each)
    for found in lines.values():
        numbers, first = {each.parameter for each in found}, found[0]
        rows = [row for row in training.rows if row.tensor in numbers]
        if rows:
            whose = "the gradient" if len(rows) == 1 else "each gradient"
            yield stands_out(
                f"{as_written(facts, first.setting)} sets {whose} of {listed(rows)} {first.count:,} times for a step, "
                "which uses only the last: nothing reads those before it",
                facts.label("modified_here", first.setting.site, "set here", first.setting.index),
                facts.label("needed_here", first.step.site, "the step", first.step.index),
            )
