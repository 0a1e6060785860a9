"""Names parameters that the removal of a parametrization takes out of a module, while the optimizer keeps them."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.optimizers.removed_parametrizations import removed_parametrizations
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches or facts.trace.script.failure is not None:
        return
    for each in removed_parametrizations(training):
        group = each.rows[0].group
        assert group is not None
        it = "it" if len(each.rows) == 1 else "them"
        yield stands_out(
            f"{as_written(facts, each.removal)} takes {listed(each.rows)} out of the module: `{group.name}` goes on "
            f"with {it}, and no later step finds a gradient of {it}",
            facts.label("replaced_here", each.removal.site, "removed here", each.removal.index),
            facts.label("needed_here", each.step.site, f"finds no gradient of {it}"),
            facts.label("optimizer_made_here", group.site, f"`{group.name}` is made here"),
        )
