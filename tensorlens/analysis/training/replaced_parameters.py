"""Finds parameters that an optimizer still steps after new ones have replaced them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.observations import Step

MAX_COPY = 8  # calls between a parameter and its copy


@dataclass(frozen=True, slots=True)
class ReplacedParameter:
    """A new parameter that gets gradients, and the old one that the optimizer steps."""

    old: int
    new: int
    index: int
    site: int | None
    copied: bool  # whether the new one was made from the old one; else it was assigned in its place


def replaced_parameters(training: Training) -> list[tuple[ReplacedParameter, Step]]:
    """Finds the replaced parameters, each with the first optimizer step that had no gradient for the old one.

    No later step has a gradient for it either.
    """
    assigned = list(_assigned(training))
    known = {replaced.new for replaced in assigned}
    both = (*assigned, *(replaced for replaced in _copied(training) if replaced.new not in known))
    pairs = ((replaced, _first_empty_step(training, replaced)) for replaced in both)
    return [(replaced, step) for replaced, step in pairs if step is not None]


def _never_updated(training: Training) -> set[int]:
    """Returns the leaves that got gradients and that neither an optimizer nor another call changed."""
    return {n for n in training.had_gradient - training.stepped if not training.is_updated(n)}


def _assigned(training: Training) -> Iterator[ReplacedParameter]:
    """Yields parameters that were assigned to a module in place of others."""
    never_updated = _never_updated(training)
    for change in training.facts.trace.assignments:
        for new in never_updated.intersection(change.new):
            for old in set(change.old) - set(change.new):
                yield ReplacedParameter(old, new, change.index, change.site, False)


def _copied(training: Training) -> Iterator[ReplacedParameter]:
    """Yields parameters that were made from those that the optimizer steps."""
    facts = training.facts
    for new in sorted(_never_updated(training)):
        made = facts.creator(new)
        if made is None or made.op != "nn.Parameter":
            continue
        calls = islice(ancestry(facts, new, made.index + 1), MAX_COPY)
        sources = (access.tensor for _, call in calls for access in call.inputs)
        old = next((number for number in sources if number in training.stepped), None)
        if old is not None:
            yield ReplacedParameter(old, new, made.index, made.site, True)


def _first_empty_step(training: Training, replaced: ReplacedParameter) -> Step | None:
    """Finds the first step after the replacement, if no step had a gradient for the old parameter from there on."""
    filled = training.last_fill(replaced.new)
    steps = [s for s in training.steps if s.index > replaced.index and replaced.old in s.parameters]
    gradients = [step.gradients[step.parameters.index(replaced.old)] for step in steps]
    if filled is None or filled.index < replaced.index or any(gradient is not None for gradient in gradients):
        return None
    return steps[0] if steps else None
