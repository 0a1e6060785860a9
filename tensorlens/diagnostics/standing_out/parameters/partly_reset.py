"""Names loops over `children()` that give some parameters of a trained module new values, and leave its inner ones."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call, Span
from tensorlens.records.observations import Step
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
        before, after = (_with_gradients(step for step in steps if (step.index < last) is is_before)
                         for is_before in (True, False))  # fmt: skip
        written = {write.tensor for call in calls for write in call.writes}
        new = [row for row in training.rows if row.tensor in written & before & after]
        left = [row for row in _inner(training, new) if row.tensor in (before & after) - written]
        if loop is not None and new and left:
            yield stands_out(
                f"{as_written(facts, calls[-1])} gives {listed(new)} new values between steps, and none to "
                f"{listed(left)}: `children()` yields the direct parts of a module, and `modules()` all",
                facts.label("state_changed_here", site, "new values", calls[-1].index),
                Label("observed_here", loop, "the direct parts only"),
            )


def _with_gradients(steps: Iterable[Step]) -> set[int]:
    pairs = (zip(step.parameters, step.gradients, strict=True) for step in steps)
    return {number for each in pairs for number, gradient in each if gradient is not None}


def _inner(training: MeasuredTraining, new: list[ParameterRow]) -> list[ParameterRow]:
    """Returns the parameters inside the direct parts of the module whose other direct parts got new values."""
    parents = {row.owner[:-1] for row in new}
    if len(parents) != 1:
        return []
    (parent,) = parents
    depth = len(parent) + 1
    changed = {row.owner[:depth] for row in new}
    below = (row for row in training.rows if row.owner[: len(parent)] == parent and len(row.owner) > depth)
    return [row for row in below if row.owner[:depth] not in changed and not training.writes(row.tensor)]


def _loop(facts: TraceIndex, site: int) -> Span | None:
    """Returns the place of the `children()` that a loop around a line runs over.

    A function that calls itself reaches the inner modules, and a test of the type chooses modules on purpose.
    """
    span = facts.span(site)
    if span is None:
        return None
    function = function_around(facts, span.file, span.line)
    if function is not None and any(
        isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == function.name
        for node in ast.walk(function)
    ):
        return None
    for node in ast.walk(function or facts.tree(span.file)):
        if isinstance(node, ast.For) and node.lineno <= span.line <= (node.end_lineno or 0):
            if ast.unparse(node.iter).endswith(".children()") and not _chooses(node):
                return facts.span_of(node.iter, span.file)
    return None


def _chooses(loop: ast.For) -> bool:
    """Returns whether a loop has a test, other than whether a module has the method."""
    tests = [node.test for node in ast.walk(loop) if isinstance(node, ast.If | ast.IfExp | ast.While)]
    return any(not (isinstance(test, ast.Call) and ast.unparse(test.func) == "hasattr") for test in tests)
