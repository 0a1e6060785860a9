"""Names loops over `children()` that give some parameters of a trained module new values, and leave its inner ones."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Label, StandingOut

_RESET = ".reset_parameters"


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if steps train both kinds of parameters before the loop, and after it."""
    facts, steps = training.facts, training.training.steps
    resets: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if facts.trace.sites[call.site].through.endswith(_RESET) and call.writes:
            resets[call.site].append(call)
    if not resets or training.training.is_hidden or not is_complete(facts.trace):
        return
    for site, calls in resets.items():
        last, loop = calls[-1].index, _loop(facts, site)
        before = {number for step in steps if step.index < last for number in step.parameters}
        after = {number for step in steps if step.index > last for number in step.parameters}
        written = {write.tensor for call in calls for write in call.writes}
        new = [row for row in training.rows if row.tensor in written & before & after]
        owners = {row.owner[:1] for row in new}
        left = [
            row for row in training.rows
            if row.tensor in (before & after) - written and row.owner[:1] in owners and not training.writes(row.tensor)
        ]  # fmt: skip
        if loop is not None and new and left:
            yield stands_out(
                f"{as_written(facts, calls[-1])} gives {listed(new)} new values between steps, and none to "
                f"{listed(left)}: `children()` yields the direct parts of a module, and `modules()` all",
                facts.label("state_changed_here", site, "new values", calls[-1].index),
                Label("observed_here", loop, "the direct parts only"),
            )


def _loop(facts: TraceIndex, site: int) -> Span | None:
    """Returns the place of the `children()` that a loop around a line runs over."""
    span = facts.span(site)
    if span is None:
        return None
    for node in ast.walk(function_around(facts, span.file, span.line) or facts.tree(span.file)):
        if isinstance(node, ast.For) and node.lineno <= span.line <= (node.end_lineno or 0):
            if ast.unparse(node.iter).endswith(".children()"):
                return facts.span_of(node.iter, span.file)
    return None
