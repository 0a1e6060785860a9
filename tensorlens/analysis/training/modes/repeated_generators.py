"""Finds random calls that are given a new generator with the same seed each time."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, loop_around_line
from tensorlens.analysis.literal_values import numbers_of
from tensorlens.analysis.naming.syntax import called_name, last_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.drawn_data import is_only_data
from tensorlens.analysis.training.repeated_seeds import MIN_TIMES, RANDOM, in_closure, used_draw
from tensorlens.records.model import Backward, Call, Span

_Around = ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef
_MOST_SEEDS = 4
_SPLITTING = frozenset("split chunk tensor_split unbind getitem".split())
_NEXT = 50  # calls after a draw
_SIZES = ("shape", "size", "len")


@dataclass(frozen=True, slots=True)
class RepeatedGenerator:
    """A random call that is given a new generator with the same seed each time, and whose result losses use."""

    draw: Call
    times: int  # backward passes that use such a result
    made: Span  # what makes the generator, or sets its seed
    seeds: int  # so many, of objects that have one each


def repeated_generators(facts: TraceIndex) -> Iterator[RepeatedGenerator]:
    """Yields these calls, one for each line."""
    used: dict[int, list[Call]] = defaultdict(list)
    made: dict[int, _Generator] = {}
    sites = {call.site for call in facts.calls if op_name(call) in RANDOM}
    for site in sites:
        generator = _generator_at(facts, site)
        if generator is not None:
            made[site] = generator
    steps = [step.index for step in facts.trace.inspection.steps]
    draws = {call.index: call for call in facts.calls if call.site in made and op_name(call) in RANDOM}
    for backward in (each for each in facts.backwards if draws and not in_closure(facts, each)):
        found = used_draw(facts, backward, draws)
        is_sample = found is not None and (made[found.site].is_literal or _is_of_data(facts, found, backward))
        is_stepped = bisect_left(steps, backward.index) < len(steps)
        if found is not None and is_sample and is_stepped and not is_only_data(facts, backward, {found.site}):
            used[found.site].append(found)
    for site, calls in used.items():
        generator = made[site]
        numbers = {call.index for call in calls}
        is_data = len(calls) >= 2 * len(numbers) and all(_is_split(facts, call) for call in calls)
        if len(numbers) >= MIN_TIMES * generator.seeds and not is_data:
            yield RepeatedGenerator(calls[-1], len(calls), generator.made, generator.seeds)


def _is_split(facts: TraceIndex, draw: Call) -> bool:
    """Returns whether a line takes parts of random numbers, as of a data set that is made anew for each epoch. An order
    of the samples is none: each epoch has the same."""
    drawn = {access.tensor for access in draw.outputs if facts.tensor(access.tensor).dtype.startswith("float")}
    following = facts.calls_between(draw.index + 1, draw.index + _NEXT)
    return any(op_name(call) in _SPLITTING and call.inputs[0].tensor in drawn for call in following if call.inputs)


@dataclass(frozen=True, slots=True)
class _Generator:
    made: Span
    seeds: int
    is_literal: bool


def _generator_at(facts: TraceIndex, site: int) -> _Generator | None:
    """Returns the generator of a random call, if the loop or the function around the call makes it anew, or sets its
    seed, with a number that does not change: `generator = torch.Generator().manual_seed(self.seed)`."""
    span, node = facts.span(site), facts.node_at(site)
    keywords = node.keywords if isinstance(node, ast.Call) else []
    given = next((each.value for each in keywords if each.arg == "generator"), None)
    if span is None or given is None:
        return None
    around = loop_around_line(facts, span.file, span.line) or function_around(facts, span.file, span.line)
    seeding = None if around is None else _seeding(facts, span.file, given, around)
    if seeding is None or around is None:
        return None
    file, call = seeding
    seed = call.args[0]
    seeds = {0.0} if isinstance(seed, ast.Constant) else numbers_of(facts, file, seed)
    if seeds is None or len(seeds) > _MOST_SEEDS:
        return None
    return _Generator(facts.span_of(call, file), len(seeds), isinstance(seed, ast.Constant))


def _seeding(facts: TraceIndex, file: str, given: ast.expr, around: _Around) -> tuple[str, ast.Call] | None:
    """Returns the call that sets the seed of a generator, if it runs in each round, below no condition."""
    direct = _seeded(facts, file, given)
    name = plain_name(given)
    if direct is not None or name is None:
        return direct
    assigned = (each for each in ast.walk(around) if isinstance(each, ast.Assign))
    own = [each for each in assigned if name in map(plain_name, each.targets)]
    found = [_seeded(facts, file, each.value) for each in own if len(own) == 1 and each in around.body]
    calls = [node for node in ast.walk(around) if called_name(node) == "manual_seed" and isinstance(node, ast.Call)]
    of_name = [call for call in calls if isinstance(call.func, ast.Attribute) and plain_name(call.func.value) == name]
    whole = [each.value for each in around.body if isinstance(each, ast.Expr)]
    is_before = len(of_name) == 1 and of_name[0] in whole and of_name[0].lineno < given.lineno
    found += [(file, call) for call in of_name if is_before and len(call.args) == 1]
    return next((each for each in found if each is not None), None)


def _seeded(facts: TraceIndex, file: str, value: ast.expr) -> tuple[str, ast.Call] | None:
    """Returns `torch.Generator().manual_seed(0)`, or the same in the only function of a name, which returns it."""
    if not isinstance(value, ast.Call):
        return None
    if called_name(value) == "manual_seed" and isinstance(value.func, ast.Attribute):
        return (file, value) if called_name(value.func.value) == "Generator" and len(value.args) == 1 else None
    name = last_name(value.func)
    places = [(each, node) for each, tree in facts.trees() for node in ast.walk(tree)]
    functions = [(each, node) for each, node in places if isinstance(node, ast.FunctionDef) and node.name == name]
    if len(functions) != 1 or functions[0][1].decorator_list:
        return None
    where, function = functions[0]
    last = function.body[-1]
    returned = last.value if isinstance(last, ast.Return) else None
    if isinstance(returned, ast.Call) and called_name(returned) == "manual_seed":
        return _seeded(facts, where, returned)
    is_made = isinstance(returned, ast.Name) and any(
        isinstance(each, ast.Assign) and called_name(each.value) == "Generator" for each in function.body
    )
    return _seeding(facts, where, returned, function) if is_made and returned is not None else None


def _is_of_data(facts: TraceIndex, draw: Call, backward: Backward) -> bool:
    """Returns whether a random call draws numbers for the samples of a batch: a fixed projection that a seed gives
    again has the size of parameters, or that of attributes."""
    node = facts.node_at(draw.site)
    shape = facts.tensor(draw.outputs[0].tensor).shape
    if not isinstance(node, ast.Call) or any(facts.tensor(each.tensor).shape == shape for each in backward.gradients):
        return False
    given = [part for each in (*node.args, *node.keywords) for part in ast.walk(each)]
    sized = [part.value for part in given if isinstance(part, ast.Attribute) and part.attr in _SIZES]
    sized += [part.args[0] for part in given if called_name(part) == "len" and isinstance(part, ast.Call) and part.args]
    if op_name(draw).endswith("_like"):
        sized += node.args[:1]
    return any(isinstance(each, ast.Name) and each.id not in ("self", "cls") for each in sized)
