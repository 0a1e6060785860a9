"""Finds gradients that one loss leaves in parameters, and that a step uses together with those of another loss.

So it is if a generator's loss runs backward through a discriminator, whose own step comes later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import history_lost_at
from tensorlens.analysis.training.falling_weights import may_maximize
from tensorlens.analysis.training.gradients.scored_results import scored_result
from tensorlens.analysis.training.gradients.summed_passes import MIN_TIMES, found_twice, summed_passes
from tensorlens.analysis.training.opposed_passes import are_opposed, is_adversarial
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step


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
    """Two passes before one step, of which one gives the same leaves gradients together with other parameters.

    The loss of the pass without these takes a result of theirs as a constant, or only the other loss is a sum or mean
    of what the leaves compute from such a result.
    """

    alone: Backward  # the pass that does not reach the other parameters
    further: Backward
    cut: Call | None  # makes the constant
    scored: Call | None  # computes with the leaves what the loss of the further pass is a sum of
    step: Step  # uses the sum of both
    leaves: tuple[int, ...]
    others: tuple[int, ...]  # another optimizer steps them later


def joined_gradients(training: Training) -> Iterator[JoinedGradient]:
    """Yields each pair of lines once, if it did so twice or more: a generator's loss after that of a discriminator."""
    yield from found_twice(training, _joined)


def _joined(training: Training, alone: Backward, further: Backward, leaves: set[int]) -> JoinedGradient | None:
    own, both = ({change.tensor for change in each.gradients} for each in (alone, further))
    others = both - own
    if not others:
        return None
    begin, end = sorted((alone.index, further.index))
    steps = [step for step in training.steps if step.index > begin]
    other = next((each for each in steps if others & set(each.parameters)), None)
    step = next((each for each in steps if each.index > end and leaves & set(each.parameters)), None)
    if step is None or other is None or other.index < end:
        return None
    if others & set(step.parameters) or own & set(other.parameters):
        return None
    cut = _cut_of(training.facts, alone, others) if own < both else None
    if cut is not None and not _is_adversarial(training, alone, further, leaves, step):
        cut = None
    scored = None
    if cut is None and own <= set(step.parameters) and not may_maximize(training.facts):
        scored = scored_result(training.facts, alone, further, leaves, others)
    if cut is None and scored is None:
        return None
    return JoinedGradient(alone, further, cut, scored, step, tuple(sorted(leaves)), tuple(sorted(others)))


def _is_adversarial(training: Training, alone: Backward, further: Backward, leaves: set[int], step: Step) -> bool:
    """Returns whether two passes pull a layer to opposite sides, as those of a GAN do: else, both can be meant to."""
    steps = (each.index for each in training.steps if leaves & set(each.parameters))
    begin = max((each for each in steps if each < min(alone.index, further.index)), default=0)
    passes = (each for each in training.facts.backwards if begin < each.index < step.index)
    return is_adversarial(training.facts, alone, further, leaves, passes)


def _cut_of(facts: TraceIndex, backward: Backward, others: set[int]) -> Call | None:
    """Returns the call by which the loss of a pass takes a result of parameters as a constant."""
    cuts = (cut for root in backward.roots for cut in history_lost_at(facts, root.tensor, backward.index))
    return next((call for call, source in cuts if others & graph_leaves(facts, source, call.index)), None)


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
            if later is not None and _are_tasks(training, first, second, leaves, later):
                continue
            each = LeftGradient(first, own[-1], second, later, tuple(sorted(leaves)), 0)
            found[first.site, second.site].append(each)
    for pairs in found.values():
        if len(pairs) >= MIN_TIMES:
            one = pairs[0]
            yield LeftGradient(one.first, one.between, one.second, one.step, one.leaves, len(pairs))


def _are_tasks(training: Training, first: Backward, second: Backward, leaves: set[int], step: Step) -> bool:
    """Returns whether two passes are those of two tasks that share a trunk: each reaches parameters of its own, which
    not the step of the trunk but others change, and none pulls the shared ones to the other side. They add up on
    purpose."""
    one, other = ({change.tensor for change in each.gradients} & training.stepped for each in (first, second))
    if (one ^ other) & set(step.parameters):
        return False
    if not one - other or not other - one:
        is_started = one - other and _are_cleared_first(training, first, second, leaves)
        if not is_started or scored_result(training.facts, second, first, leaves, one - other) is not None:
            return False
    return not any(are_opposed(training.facts, *pair, leaves) for pair in ((first, second), (second, first)))


def _are_cleared_first(training: Training, first: Backward, second: Backward, leaves: set[int]) -> bool:
    """Returns whether the source clears the gradients of some leaves above the lines of two passes, for both."""
    facts, leaf = training.facts, min(leaves)
    cleared = training.last_moment(leaf, first.index, "fill", "clear", "update")
    if cleared is None or cleared.kind != "clear":
        return False
    sites = (cleared.event.site, first.site, second.site)
    spans = [facts.span(site) for site in sites]
    places = [(each.file, each.line, each.column) for each in spans if each is not None]
    is_ordered = len(places) == len(spans) and places == sorted(places) and len({file for file, *_ in places}) == 1
    return is_ordered and len({facts.scope(site) for site in sites if site is not None}) == 1
