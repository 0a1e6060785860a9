"""Finds values with a graph that are computed from parameters before their first step, and that losses use after it.

`self.A = torch.stack([-self.k, self.c])` in a constructor keeps the first value, whatever the steps do to `k`. Each
pass gives a gradient to `k`, and no error is raised where the graph has saved no tensor.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, statement_around, upwards
from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.cut_graphs.stale_factors import is_given_anew, is_of_start
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_MIN_STEPS = _MIN_USES = 3
_LEAVING = ast.Return | ast.Continue


@dataclass(frozen=True, slots=True)
class StaleGraph:
    """A value with a graph that is older than the steps of the parameters below it."""

    parameters: tuple[int, ...]
    made: Call  # before the first step of the parameters
    used: Call  # in the last pass of a line; no loss uses the parameters in another way after their first step
    kept: int | None  # the site whose statement has given the value a name
    steps: int  # of the parameters before `used`
    is_once: bool  # no other call of the line computes one


def stale_graphs(training: Training) -> Iterator[StaleGraph]:
    """Yields one for each line that computes such a value and number of steps."""
    facts = training.facts
    steps = [step.index for step in training.steps]
    last = {each.site: each for each in facts.backwards if not each.failed} if len(steps) >= _MIN_STEPS else {}
    groups, done = dict[tuple[int, int, int], list[tuple[int, Call, Call]]](), set[int]()
    for backward in last.values():
        for number, made, used in _older(facts, backward, steps):
            if number in done or made.within or not _is_kept_as_is(facts, number, made):
                continue
            done.add(number)
            for parameter, count in _below(training, backward, number, made, used):
                groups.setdefault((made.site, used.site, count), []).append((parameter, made, used))
    for (site, _, count), found in groups.items():
        _, made, used = found[0]
        is_once = Counter(call.site for call in facts.calls)[site] == 1
        parameters = tuple(dict.fromkeys(parameter for parameter, _, _ in found))
        yield StaleGraph(parameters, made, used, _kept(facts, made), count, is_once)


def _older(facts: TraceIndex, backward: Backward, steps: list[int]) -> Iterator[tuple[int, Call, Call]]:
    """Yields the values that calls of a loss use several steps after they were computed, with both calls."""
    for call in recorded_above(facts, backward):
        place = bisect_left(steps, call.index)
        is_own = call.op.endswith(".apply")  # a custom Function may read the parameters itself
        for access in call.inputs if place >= _MIN_STEPS and not is_own else ():
            made = next(iter(facts.producers(access.tensor, call.index)), None)
            if (
                made is not None
                and made.index < steps[place - _MIN_STEPS]
                and made.nodes[1] > made.nodes[0]
                and facts.requires_grad(access.tensor, call.index - 1)
            ):
                yield access.tensor, made, call


def _is_kept_as_is(facts: TraceIndex, number: int, made: Call) -> bool:
    """Returns whether no line gives a value anew, and no name says that it is to stay that of the start."""
    storages = facts.storages_of(number)
    later = facts.calls_between(made.index + 1)
    if any(facts.storage_of(write.tensor, call.index) in storages for call in later for write in call.writes):
        return False
    names = (name for site in facts.call_chain(made.site) for name in facts.trace.sites[site].targets)
    return not is_given_anew(facts, made) and not any(map(is_of_start, names)) and not _is_at_times(facts, made)


def _is_at_times(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a condition such as `step % 100 == 0` is around a line, which a longer run gets to again, or is
    in it, or ends its function or round before it."""
    spans = [facts.trace.sites[site].span for site in facts.call_chain(made.site)]
    statements = [(span.file, statement) for span in spans if (statement := statement_around(facts, span)) is not None]
    around = (each for file, statement in statements for each in upwards(facts, file, statement))
    tests = [each.test for each in around if isinstance(each, ast.If)]
    tests += [each.test for _, statement in statements for each in ast.walk(statement) if isinstance(each, ast.IfExp)]
    for span in spans:
        function = function_around(facts, span.file, span.line)
        for each in ast.walk(function) if function is not None else ():
            if isinstance(each, ast.If) and each.lineno < span.line and isinstance(each.body[-1], _LEAVING):
                tests.append(each.test)
    return any(isinstance(node, ast.Mod) for test in tests for node in ast.walk(test))


def _below(training: Training, backward: Backward, number: int, made: Call, used: Call) -> Iterator[tuple[int, int]]:
    """Yields the parameters that a value is a copy or a function of and that nothing else in a loss uses after their
    first step, each with the steps that it has had before the last use."""
    facts = training.facts
    filled = {change.tensor for change in backward.gradients if change.after is not None}
    for parameter in sorted(graph_leaves(facts, number, used.index) & filled & training.stepped):
        steps = [
            step.index
            for step in training.steps
            for stepped, gradient in zip(step.parameters, step.gradients, strict=True)
            if stepped == parameter and gradient is not None
        ]
        count, memory = bisect_left(steps, used.index), facts.storages_of(parameter)
        if count < _MIN_STEPS or steps[0] < made.index or memory & facts.storages_of(number):
            continue  # a view has the values of now
        later = [call for call in facts.calls_between(steps[0]) if call.nodes[1] > call.nodes[0] and not call.within]
        uses = {bisect_left(steps, call.index) for call in later if any(each.tensor == number for each in call.inputs)}
        is_fresh = any(facts.storage_of(each.tensor, call.index) in memory for call in later for each in call.inputs)
        if len(uses) >= _MIN_USES and not is_fresh:
            yield parameter, count


def _kept(facts: TraceIndex, made: Call) -> int | None:
    return next((site for site in facts.call_chain(made.site)[1:] if facts.trace.sites[site].targets), None)
