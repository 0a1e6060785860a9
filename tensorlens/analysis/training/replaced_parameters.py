"""Parameters that an optimizer goes on holding after others have taken their place."""

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
    """A parameter that is trained in place of the one that an optimizer holds."""

    old: int
    new: int
    index: int
    site: int | None
    copied: bool


def replaced_parameters(training: Training) -> list[tuple[ReplacedParameter, Step]]:
    """Each replaced parameter with the first step that found no gradient for it, where none did from there on."""
    assigned = list(_assigned(training))
    known = {replaced.new for replaced in assigned}
    both = (*assigned, *(replaced for replaced in _copied(training) if replaced.new not in known))
    pairs = ((replaced, _in_vain(training, replaced)) for replaced in both)
    return [(replaced, step) for replaced, step in pairs if step is not None]


def _lost(training: Training) -> set[int]:
    """The leaves that got gradients, and that no optimizer and nothing else ever changed."""
    return {n for n in training.had_gradient - training.stepped if not training.is_updated(n)}


def _assigned(training: Training) -> Iterator[ReplacedParameter]:
    """Parameters that took the place of others in a module."""
    lost = _lost(training)
    for change in training.facts.trace.assignments:
        for new in lost.intersection(change.new):
            for old in set(change.old) - set(change.new):
                yield ReplacedParameter(old, new, change.index, change.site, False)


def _copied(training: Training) -> Iterator[ReplacedParameter]:
    """Parameters that were made as copies of others."""
    facts = training.facts
    for new in sorted(_lost(training)):
        made = facts.creator(new)
        if made is None or made.op != "nn.Parameter":
            continue
        calls = islice(ancestry(facts, new, made.index + 1), MAX_COPY)
        sources = (access.tensor for _, call in calls for access in call.inputs)
        old = next((number for number in sources if number in training.stepped), None)
        if old is not None:
            yield ReplacedParameter(old, new, made.index, made.site, True)


def _in_vain(training: Training, replaced: ReplacedParameter) -> Step | None:
    """The first step after the new parameter had its gradient, if no step found one for the old one from there on."""
    filled = training.last_fill(replaced.new)
    steps = [s for s in training.steps if s.index > replaced.index and replaced.old in s.parameters]
    held = [step.gradients[step.parameters.index(replaced.old)] for step in steps]
    if filled is None or filled.index < replaced.index or any(gradient is not None for gradient in held):
        return None
    return steps[0] if steps else None
