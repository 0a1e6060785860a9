"""Names gradients that a pass leaves in parameters of another optimizer, whose step uses them with its own."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.gradients.leaked_gradients import LeakedGradient, leaked_gradients
from tensorlens.analysis.training.gradients.leftover_gradients import JoinedGradient, joined_gradients, left_gradients
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in left_gradients(training.training):
        rows = [row for row in training.rows if row.tensor in each.leaves]
        if rows:
            step = "a step" if each.step is None else f"`{each.step.op}()`"
            text = f"{step} uses sums of gradients of {listed(rows)}: a part is left from a pass after which"
            yield stands_out(
                f"{text} `{each.between.op}()` has stepped other parameters",
                facts.label("accumulated_here", each.first.site, "fills them too, and nothing clears them"),
                facts.label("needed_here", each.second.site, "adds to them"),
                None if each.step is None else facts.label("state_changed_here", each.step.site, "uses the sums"),
            )
    for leaked in leaked_gradients(training.training):
        rows = [row for row in training.rows if row.tensor in leaked.leaves]
        judges = [row for row in training.rows if row.tensor in leaked.judges]
        if rows and judges:
            yield _leaked(facts, leaked, listed(rows), listed(judges))
    for joined in joined_gradients(training.training):
        rows = [row for row in training.rows if row.tensor in joined.leaves]
        others = [row for row in training.rows if row.tensor in joined.others]
        if rows and others:
            yield _joined(facts, joined, listed(rows), listed(others))


def _leaked(facts: TraceIndex, leaked: LeakedGradient, rows: str, judges: str) -> StandingOut:
    return stands_out(
        f"`{leaked.step.op}()` uses sums of gradients of {rows}: the losses of two passes pull a result of them in "
        f"opposite directions, and one of the passes is for {judges}, whose own step uses no gradient of the other",
        facts.label("accumulated_here", leaked.leaked.site, "adds to them, and nothing clears them before"),
        facts.label("observed_here", leaked.judged.site, "the result", leaked.judged.index),
        facts.label("needed_here", leaked.own.site, "the other pass"),
        facts.label("state_changed_here", leaked.step.site, "uses the sums"),
    )


def _joined(facts: TraceIndex, joined: JoinedGradient, rows: str, others: str) -> StandingOut:
    text = f"`{joined.step.op}()` uses sums of gradients of {rows}: "
    if joined.cut is not None:
        text += f"the loss of one pass takes {as_written(facts, joined.cut)} as a constant, and the other pass gives "
        text += f"them gradients together with {others}"
        cut = facts.label("graph_cut_here", joined.cut.site, "gives a constant", joined.cut.index)
        alone = "the pass with the constant"
    else:
        text += f"one pass does not reach {others}, and the loss of the other pass, which does, raises or lowers "
        text += "what they compute from a result of these, and compares it with nothing"
        cut, alone = None, "the pass that does not reach the others"
    return stands_out(
        text,
        facts.label("accumulated_here", joined.further.site, "adds to them, and nothing clears them before"),
        facts.label("needed_here", joined.alone.site, alone),
        facts.label("state_changed_here", joined.step.site, "uses the sums"),
        cut,
    )
