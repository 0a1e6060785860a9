"""Finds seeds that a line sets again and again between training steps, which then draw the same random numbers."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.drawn_data import is_only_data
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step
from tensorlens.records.training_values import SeedSet

_LAYERS = frozenset(  # these take no generator of their own
    "dropout alpha_dropout feature_dropout feature_alpha_dropout dropout1d dropout2d dropout3d rrelu gumbel_softmax "
    "fractional_max_pool2d".split()
)
DRAWS = frozenset(
    "rand randn randint randperm rand_like randn_like randint_like normal bernoulli poisson uniform multinomial "
    "exponential log_normal geometric cauchy random".split()
)
RANDOM = _LAYERS | DRAWS
MIN_TIMES = 3
_MAX_DEPTH = 4  # calls between a random value and the graph of a loss


@dataclass(frozen=True, slots=True)
class RepeatedSeed:
    """A line that sets one seed again and again, and a random call after it whose result the next loss uses."""

    seed: SeedSet  # the last
    times: int  # how often a backward pass follows that uses such a result
    draw: Call


def repeated_seeds(facts: TraceIndex) -> Iterator[RepeatedSeed]:
    """Yields these lines. A state of the generator that the program sets itself ends what follows a seed.

    A seed before the first step of a model, as in a search that trains several from one seed, does not count.
    """
    seeds = facts.trace.inspection.seeds
    steps = facts.trace.inspection.steps
    first: dict[int, int] = {}  # tensor -> its first pass
    for backward in facts.backwards:
        for change in backward.gradients:
            first.setdefault(change.tensor, backward.index)
    found: dict[tuple[int | None, int | None, int | None], list[tuple[SeedSet, _Drawn]]] = defaultdict(list)
    for place, seed in enumerate(seeds):
        end = seeds[place + 1].index if place + 1 < len(seeds) else facts.events[-1].index + 1 if facts.events else 0
        if seed.seed is not None or seed.state is not None:
            drawn = _draw(facts, seed.index, end, steps, first)
            earlier = found[seed.site, seed.seed, seed.state]
            if drawn is not None and (not earlier or _follows(earlier[-1][1], drawn)):
                earlier.append((seed, drawn))
    others = {each.site for each in seeds if each.seed is None and each.state is None}
    for (site, *_), each in found.items():
        if site not in others and len(each) >= MIN_TIMES:
            others.add(site)
            yield RepeatedSeed(each[-1][0], len(each), each[-1][1].call)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A random call after a seed, the pass that uses it, and the next step of a parameter that has a gradient of it."""

    call: Call
    passed: int
    step: Step


def _follows(earlier: _Drawn, later: _Drawn) -> bool:
    """Returns whether a pass follows the step of an earlier one, and the same parameters are stepped after both."""
    return earlier.step.index < later.passed and not set(earlier.step.parameters).isdisjoint(later.step.parameters)


def _draw(facts: TraceIndex, begin: int, end: int, steps: Sequence[Step], first: dict[int, int]) -> _Drawn | None:
    """Returns a random call after a seed whose result goes into the next loss that a step uses, before another seed.

    A pass inside a closure does not count: a line search needs the same function each time.
    """
    passes = [each for each in facts.backwards if begin <= each.index < end and not each.failed]
    changed = {change.tensor for change in passes[0].gradients} if passes else set[int]()
    if not any(first[tensor] < begin for tensor in changed) or in_closure(facts, passes[0]):
        return None
    at = bisect_left(steps, passes[0].index, key=lambda step: step.index)
    step = next((each for each in steps[at:] if not changed.isdisjoint(each.parameters)), None)
    if step is None:
        return None
    calls = facts.events[facts.trace.position(begin) : facts.trace.position(passes[0].index)]
    draws = {event.index: event for event in calls if isinstance(event, Call) and _draws(facts, event)}
    call = used_draw(facts, passes[0], draws) if draws else None
    sites = {each.site for each in draws.values()}
    if call is None or (op_name(call) in DRAWS and is_only_data(facts, passes[0], sites)):
        return None
    return _Drawn(call, passes[0].index, step)


def in_closure(facts: TraceIndex, backward: Backward) -> bool:
    """Returns whether a step of an optimizer runs a pass."""
    before = facts.events[facts.trace.position(backward.index) - 1]
    return isinstance(before, Call) and bool(before.within)


def _draws(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call draws from the generator that `manual_seed()` seeds."""
    if op_name(call) in _LAYERS:
        return True
    span = facts.span(call.site) if op_name(call) in RANDOM else None
    node = None if span is None else facts.names.syntax.node(span)
    return isinstance(node, ast.Call) and not any(keyword.arg in ("generator", None) for keyword in node.keywords)


def used_draw(facts: TraceIndex, backward: Backward, draws: dict[int, Call]) -> Call | None:
    for call in recorded_above(facts, backward):
        if call.index in draws:
            return call
        waiting = [(access.tensor, call.index, 0) for access in call.inputs]
        for number, before, depth in waiting:
            if facts.requires_grad(number, before - 1):
                continue
            made = next(iter(facts.producers(number, before)), None)
            if made is None:
                continue
            if made.index in draws:
                return draws[made.index]
            if depth < _MAX_DEPTH:
                waiting += [(access.tensor, made.index, depth + 1) for access in made.inputs]
    return None
