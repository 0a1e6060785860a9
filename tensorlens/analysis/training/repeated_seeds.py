"""Finds seeds that a line sets again and again between training steps, which then draw the same random numbers."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, loop_around_line
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.records.model import Backward, Call, Span
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
_RANDOM = _LAYERS | DRAWS
_MIN_TIMES = 3
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
        if site not in others and len(each) >= _MIN_TIMES:
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


@dataclass(frozen=True, slots=True)
class RepeatedGenerator:
    """A random call that is given a new generator with the same seed each time, and whose result losses use."""

    draw: Call
    times: int  # backward passes that use such a result
    made: Span  # what makes the generator


def repeated_generators(facts: TraceIndex) -> Iterator[RepeatedGenerator]:
    """Yields these calls, one for each line."""
    used: dict[int, list[Call]] = defaultdict(list)
    made: dict[int, Span] = {}
    sites = {call.site for call in facts.calls if op_name(call) in _RANDOM}
    for site in sites:
        span = _generator_at(facts, site)
        if span is not None:
            made[site] = span
    steps = [step.index for step in facts.trace.inspection.steps]
    draws = {call.index: call for call in facts.calls if call.site in made and op_name(call) in _RANDOM}
    for backward in facts.backwards if draws else ():
        found = _used(facts, backward, draws)
        if found is not None and bisect_left(steps, backward.index) < len(steps):
            used[found.site].append(found)
    for site, calls in used.items():
        if len({call.index for call in calls}) >= _MIN_TIMES:
            yield RepeatedGenerator(calls[-1], len(calls), made[site])


def _generator_at(facts: TraceIndex, site: int) -> Span | None:
    """Returns where the generator of a random call is made, if the loop or the function around the call makes it anew
    with a constant seed: `generator = torch.Generator().manual_seed(0)`."""
    span = facts.span(site)
    node = None if span is None else facts.names.syntax.node(span)
    keywords = node.keywords if isinstance(node, ast.Call) else []
    given = next((each.value for each in keywords if each.arg == "generator"), None)
    if span is None or given is None:
        return None
    around = loop_around_line(facts, span.file, span.line) or function_around(facts, span.file, span.line)
    values = [given]
    if isinstance(given, ast.Name) and around is not None:
        assigned = (each for each in ast.walk(around) if isinstance(each, ast.Assign))
        own = [each for each in assigned if given.id in map(plain_name, each.targets)]
        values = [each.value for each in own if len(own) == 1 and each in around.body]  # below no condition
    if len(values) != 1 or around is None or not _is_new_generator(values[0]):
        return None
    return facts.span_of(values[0], span.file)


def _is_new_generator(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or len(value.args) != 1:
        return False
    made = value.func.value
    is_made = isinstance(made, ast.Call) and ast.unparse(made.func).rpartition(".")[2] == "Generator"
    return is_made and value.func.attr == "manual_seed" and isinstance(value.args[0], ast.Constant)


def _draw(facts: TraceIndex, begin: int, end: int, steps: Sequence[Step], first: dict[int, int]) -> _Drawn | None:
    """Returns a random call after a seed whose result goes into the next loss that a step uses, before another seed.

    A pass inside a closure does not count: a line search needs the same function each time.
    """
    passes = [each for each in facts.backwards if begin <= each.index < end and not each.failed]
    changed = {change.tensor for change in passes[0].gradients} if passes else set[int]()
    if not any(first[tensor] < begin for tensor in changed) or _in_closure(facts, passes[0]):
        return None
    at = bisect_left(steps, passes[0].index, key=lambda step: step.index)
    step = next((each for each in steps[at:] if not changed.isdisjoint(each.parameters)), None)
    if step is None:
        return None
    calls = facts.events[facts.trace.position(begin) : facts.trace.position(passes[0].index)]
    draws = {event.index: event for event in calls if isinstance(event, Call) and _draws(facts, event)}
    call = _used(facts, passes[0], draws) if draws else None
    return None if call is None else _Drawn(call, passes[0].index, step)


def _in_closure(facts: TraceIndex, backward: Backward) -> bool:
    """Returns whether a step of an optimizer runs a pass."""
    before = facts.events[facts.trace.position(backward.index) - 1]
    return isinstance(before, Call) and bool(before.within)


def _draws(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call draws from the generator that `manual_seed()` seeds."""
    if op_name(call) in _LAYERS:
        return True
    span = facts.span(call.site) if op_name(call) in _RANDOM else None
    node = None if span is None else facts.names.syntax.node(span)
    return isinstance(node, ast.Call) and not any(keyword.arg in ("generator", None) for keyword in node.keywords)


def _used(facts: TraceIndex, backward: Backward, draws: dict[int, Call]) -> Call | None:
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
