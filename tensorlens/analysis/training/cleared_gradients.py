"""Finds gradients that were meant to accumulate, but were cleared before the update used them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.analysis.training.inspected_gradients import inspected_gradients
from tensorlens.analysis.training.timeline import Moment, Training
from tensorlens.records.model import Backward, Call, Span

MIN_UPDATES = 2
_DECIDING = OPS_LEAVING_TORCH | {"Tensor.__bool__"}


@dataclass(frozen=True, slots=True)
class ClearedGradients:
    """The gradients of one leaf that were cleared before an update."""

    leaf: int
    filled: Moment  # the backward pass that computed the last of them
    cleared: Moment  # what cleared it
    used: Moment  # the update, which used only the last gradient
    count: int  # gradients cleared before this update
    updates: int  # updates before which gradients were cleared


def cleared_gradients(training: Training, leaf: int) -> ClearedGradients | None:
    """Finds the gradients of a leaf that were cleared before its last update.

    None unless the same number of gradients was cleared before every update, and there are `MIN_UPDATES` or more: a
    single case may be intended, and a program that skips bad batches skips them irregularly. None also if the script
    reads the gradient, or decides by a value of a pass whether to use its gradients.
    """
    if leaf in inspected_gradients(training) or leaf not in training.stepped:
        return None
    pending: Moment | None = None
    cleared: list[tuple[Moment, Moment]] = []  # (filled, cleared)
    updates: list[ClearedGradients] = []
    for moment in training.moments.get(leaf, ()):
        if moment.kind == "fill":
            pending = moment
        elif moment.kind == "touch":
            pending = None
        elif moment.kind == "clear" and pending is not None:
            if not _is_used(training, pending, moment):
                cleared.append((pending, moment))
            pending = None
        elif moment.kind == "update" and pending is not None and moment.fresh:
            same = [pair for pair in cleared if _is_alike(pair[0], pending)]
            if not same or _in_closure(training, pending):
                return None
            updates.append(ClearedGradients(leaf, *same[-1], moment, len(same), len(updates) + 1))
            pending, cleared = None, []
    counts = {update.count for update in updates}
    if (
        len(updates) < MIN_UPDATES
        or len(counts) > 1
        or is_chosen(training, updates[-1].filled.index, updates[-1].used.index)
    ):
        return None
    return updates[-1]


def _is_used(training: Training, filled: Moment, cleared: Moment) -> bool:
    """Returns whether an optimizer used gradients of the same pass before they were cleared.

    In block coordinate descent each pass is for the optimizer of one block, and fills the gradients of all blocks.
    """
    event = filled.event
    reached = {change.tensor for change in event.gradients} if isinstance(event, Backward) else set()
    between = (step for step in training.steps if filled.index < step.index < cleared.index)
    return any(not reached.isdisjoint(step.parameters) for step in between)


def is_chosen(training: Training, begin: int, end: int) -> bool:
    """Returns whether a condition of the script reads a number from torch between two events: `loss.item() > 10`."""
    facts = training.facts
    return any(
        call.op in _DECIDING and _in_condition(facts, facts.trace.sites[call.site].span)
        for call in calls_between(facts, begin, end)
    )


def calls_between(facts: TraceIndex, begin: int, end: int) -> Iterator[Call]:
    """Yields the calls after event `begin` and before event `end`."""
    for event in facts.events[facts.trace.position(begin + 1) : facts.trace.position(end)]:
        if isinstance(event, Call):
            yield event


def _in_condition(facts: TraceIndex, span: Span) -> bool:
    """Returns whether the condition of an `if` or a `while` contains a piece of source."""
    tests = (node.test for node in ast.walk(facts.tree(span.file)) if isinstance(node, ast.If | ast.While))
    return any(test.lineno <= span.line and span.end_line <= (test.end_lineno or 0) for test in tests)


def _is_alike(one: Moment, other: Moment) -> bool:
    """Returns whether two backward passes ran on one line and reached the same leaves.

    The line alone does not decide: a helper function may run the backward of a generator and of its critic.
    """
    first, second = one.event, other.event
    if not isinstance(first, Backward) or not isinstance(second, Backward) or first.site != second.site:
        return False
    return {change.tensor for change in first.gradients} == {change.tensor for change in second.gradients}


def _in_closure(training: Training, filled: Moment) -> bool:
    """Returns whether a step ran this backward in its closure. An optimizer may try several values there and keep
    one."""
    events = training.facts.events
    before = events[training.facts.trace.position(filled.index) - 1]
    return isinstance(before, Call) and bool(before.within)
