"""Names parameters that two modules shared until another parameter was assigned to one of the modules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.failure_context import Assignment
from tensorlens.records.report import StandingOut

_MAX_COPY = 8  # calls between a parameter and its copy


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds assignments of new parameters of the same shape to places where a shared one was, if two get gradients.

    A new parameter that is made from the old one, as a copy of its values, separates them on purpose.
    """
    ties: dict[int, Assignment] = {}
    replaced: dict[int, list[tuple[Assignment, int]]] = defaultdict(list)
    for change in training.facts.trace.assignments:
        for old, new in zip(change.old, change.new, strict=False):
            if old in ties and old != new:
                replaced[old].append((change, new))
        if change.shared:
            ties.update(dict.fromkeys(change.new, change))
    for old, changes in replaced.items():
        change, _ = changes[-1]
        numbers = [new for each, new in changes if not _is_shared_later(training, each, new)]
        kept = [row for number in [*numbers[::-1], old] if (row := _trained(training, number, change)) is not None]
        if len(kept) > 1 and all(_is_new(training.facts, old, row.tensor) for row in kept):
            yield _sentence(training.facts, (ties[old], change), kept)


def _is_shared_later(training: MeasuredTraining, change: Assignment, new: int) -> bool:
    """Returns whether a new parameter is shared again, by a later assignment of it to another module."""
    later = (each for each in training.facts.trace.assignments if each.index >= change.index and each.shared)
    return any(new in each.new for each in later)


def _trained(training: MeasuredTraining, number: int, change: Assignment) -> ParameterRow | None:
    """Returns the row of a parameter that gets gradients after an assignment."""
    last = training.training.last_fill(number)
    return training.row(number) if last is not None and last.index >= change.index else None


def _is_new(facts: TraceIndex, old: int, new: int) -> bool:
    """Returns whether a parameter is the old one, or has its shape and not its values."""
    made = facts.creator(new)
    if old == new or made is None or facts.tensor(old).shape != facts.tensor(new).shape:
        return old == new
    calls = islice(ancestry(facts, new, made.index + 1), _MAX_COPY)
    return all(access.tensor != old for _, call in calls for access in call.inputs)


def _sentence(facts: TraceIndex, changes: tuple[Assignment, Assignment], rows: list[ParameterRow]) -> StandingOut:
    tie, change = changes
    names = " and ".join(f"`{row.name}`" for row in rows[:2])
    text = f"{names} were one parameter, and are two after {code_at(facts, change.site, 'an assignment')}"
    return stands_out(
        text,
        facts.label("replaced_here", change.site, "another parameter is assigned", change.index),
        facts.label("shared_here", tie.site, "one parameter from here on", tie.index),
    )
