"""Finds gradients that one loss leaves in parameters, and that a step uses together with those of another loss.

So it is if a generator's loss runs backward through a discriminator, whose own step comes later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.training.constant_terms import history_lost_at
from tensorlens.analysis.training.recounted_terms import summed_passes
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step

_MIN_TIMES = 2


@dataclass(frozen=True, slots=True)
class LeftGradient:
    """Two passes of different lines whose gradients a step uses together, although a step of other parameters came
    between them."""

    first: Backward
    between: Step  # uses the gradients of the first pass, of other parameters
    second: Backward
    step: Step | None  # uses the sum; None: an update by hand
    leaves: tuple[int, ...]
    times: int  # how often these two lines did so


@dataclass(frozen=True, slots=True)
class JoinedGradient:
    """Two passes before one step: the loss of the first takes a result of other parameters as a constant, and the
    second goes on to these, through the same leaves."""

    first: Backward
    cut: Call  # makes the constant
    second: Backward
    step: Step  # uses the sum of both
    other: Step  # uses the gradients of the other parameters
    leaves: tuple[int, ...]
    others: tuple[int, ...]


def joined_gradients(training: Training) -> Iterator[JoinedGradient]:
    """Yields each pair of lines once, if it did so twice or more: a generator's loss after that of a discriminator."""
    facts, found = training.facts, dict[tuple[int, int], list[JoinedGradient]]()
    for first, second, leaves in summed_passes(training):
        own, both = ({change.tensor for change in each.gradients} for each in (first, second))
        others = both - own
        if first.site == second.site or not own < both or "autograd.grad" in (first.op, second.op):
            continue
        later = [step for step in training.steps if step.index > second.index]
        step = next((each for each in later if leaves & set(each.parameters)), None)
        other = next((each for each in later if others & set(each.parameters)), None)
        if step is None or other is None or others & set(step.parameters) or own & set(other.parameters):
            continue
        cuts = (cut for root in first.roots for cut in history_lost_at(facts, root.tensor, first.index))
        cut = next((call for call, source in cuts if others & graph_leaves(facts, source, call.index)), None)
        if cut is not None:
            pair = found.setdefault((first.site, second.site), [])
            pair.append(JoinedGradient(first, cut, second, step, other, tuple(sorted(leaves)), tuple(sorted(others))))
    yield from (each[0] for each in found.values() if len(each) >= _MIN_TIMES)


def left_gradients(training: Training) -> Iterator[LeftGradient]:
    """Yields each pair of lines once, if it did so twice or more."""
    found: dict[tuple[int, int], list[LeftGradient]] = defaultdict(list)
    for first, second, leaves in summed_passes(training):
        if "autograd.grad" in (first.op, second.op):
            continue
        filled = {change.tensor for change in first.gradients}
        if first.site == second.site:  # one function calls backward for each loss
            filled -= {change.tensor for change in second.gradients}
        between = [step for step in training.steps if first.index < step.index <= second.started]
        own = [step for step in between if filled & set(step.parameters)]
        if own and not any(leaves & set(step.parameters) for step in own):
            later = next((s for s in training.steps if s.index > second.index and leaves & set(s.parameters)), None)
            each = LeftGradient(first, own[-1], second, later, tuple(sorted(leaves)), 0)
            found[first.site, second.site].append(each)
    for pairs in found.values():
        if len(pairs) >= _MIN_TIMES:
            one = pairs[0]
            yield LeftGradient(one.first, one.between, one.second, one.step, one.leaves, len(pairs))
