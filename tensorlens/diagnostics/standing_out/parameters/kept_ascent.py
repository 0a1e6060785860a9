"""Names lines that move parameters along their gradients before another backward pass, and do not move them back, also
those of an inner loop."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.parameters.kept_ascents import inner_updates, kept_ascents
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in kept_ascents(training):
        one = len(each.rows) == 1
        gradients, them = ("its gradient", "it") if one else ("the gradients", "them")
        yield stands_out(
            f"{as_written(facts, each.write)} moves {listed(each.rows)} along {gradients} between two backward passes "
            f"in each of {each.rounds:,} rounds, and nothing moves {them} back: `{each.step.op}()` begins at the moved "
            "values",
            facts.label("modified_here", each.write.site, "moved here", each.write.index),
            facts.label("observed_here", each.second.site, "the second pass"),
            facts.label("needed_here", each.step.site, "the step begins at the moved values"),
        )
    for inner in inner_updates(training):
        them = "it" if len(inner.rows) == 1 else "them"
        yield stands_out(
            f"{as_written(facts, inner.write)} moves {listed(inner.rows)} along what `autograd.grad()` returns before "
            f"each of {inner.rounds:,} steps, and nothing moves {them} back: `{inner.step.op}()` begins at the moved "
            "values",
            facts.label("modified_here", inner.write.site, "moved here", inner.write.index),
            facts.label("value_made_here", inner.gradient.site, "the gradients", inner.gradient.index),
            facts.label("needed_here", inner.step.site, "the step begins at the moved values"),
        )
