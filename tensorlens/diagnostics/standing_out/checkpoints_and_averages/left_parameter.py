"""Names loads that leave out parameters whose averages an optimizer loads."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.checkpoints_and_averages.left_parameters import left_parameters
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, lines = training.facts, set[int | None]()
    for each in left_parameters(training):
        if each.averages.site in lines:
            continue
        lines.add(each.averages.site)
        load = code_at(facts, each.averages.site, "Optimizer.load_state_dict")
        yield stands_out(
            f"{load} loads averages of the gradients of {listed(each.left)}, which begin with the values that they "
            f"were made with: a line has loaded the other {each.loaded:,} parameters of the `{each.averages.name}`",
            facts.label("state_changed_here", each.load.site, "loads others"),
            facts.label("called_here", each.averages.site, "loads the averages"),
        )
