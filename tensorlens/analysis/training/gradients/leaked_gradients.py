"""Finds losses of a critic that also reach what the critic judges, and oppose there the loss of the judged side.

So it is in a GAN or an adversarial autoencoder if the critic's loss takes a result that is not detached, and the step
of the generator or encoder comes after the backward pass of the critic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.training.gradients.summed_passes import found_twice
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.analysis.training.opposed_passes import opposed_results
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step


@dataclass(frozen=True, slots=True)
class LeakedGradient:
    """Two passes before a step of the leaves. One is for the judges, whose own step uses no gradient of the other."""

    own: Backward
    leaked: Backward  # for the judges
    judged: Call  # computes with the judges the result that the two losses pull to opposite sides
    step: Step  # uses the sum of both passes
    leaves: tuple[int, ...]
    judges: tuple[int, ...]


def leaked_gradients(training: Training) -> Iterator[LeakedGradient]:
    """Yields each pair of lines once, if it did so twice or more."""
    yield from found_twice(training, _leaked)


def _leaked(training: Training, own: Backward, leaked: Backward, leaves: set[int]) -> LeakedGradient | None:
    begin, end = min(own.index, leaked.index), max(own.index, leaked.index)
    step = next((each for each in training.steps if each.index > end and leaves & set(each.parameters)), None)
    reached, by_own = ({change.tensor for change in each.gradients} & training.stepped for each in (leaked, own))
    judges = reached - leaves
    if step is None or not judges or judges & set(step.parameters) or not leaves <= set(step.parameters):
        return None
    if any(begin < each.index < end for each in training.steps):
        return None
    later = next((each for each in training.steps if each.index > end and judges & set(each.parameters)), None)
    if later is None or not judges <= set(later.parameters) or leaves & set(later.parameters):
        return None
    if any(not _is_cleared_between(training, each, own, leaked) for each in judges & by_own):
        return None
    results = opposed_results(training.facts, own, leaked, judges, leaves)
    if results is None or (results[0] != results[1] and _may_turn(training, own, leaked)):
        return None
    return LeakedGradient(own, leaked, results[1], step, tuple(sorted(leaves)), tuple(sorted(judges)))


def _is_cleared_between(training: Training, number: int, own: Backward, leaked: Backward) -> bool:
    """Returns whether the gradient that the pass `own` gives a parameter is cleared before the other pass."""
    last = training.last_moment(number, leaked.index, "clear")
    return last is not None and own.index < last.index


def _may_turn(training: Training, own: Backward, leaked: Backward) -> bool:
    """Returns whether a hook or a custom Function may turn a gradient on its way to the leaves."""
    facts = training.facts
    is_hooked = any(each.kind == "tensor hook" for each in facts.trace.callbacks.registrations)
    return is_hooked or any(
        call.op.endswith(".apply") for each in (own, leaked) for call in recorded_above(facts, each)
    )
