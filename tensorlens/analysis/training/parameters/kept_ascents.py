"""Finds parameters that a line moves along their gradients for another backward pass, and that nothing moves back.

The gradients are those of a pass before, as in sharpness-aware minimization, or those of `autograd.grad()`, as in an
inner loop of meta-learning.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.blends import copied_tensor
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.factor_signs import factor_sign
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.parameters.equal_batches import is_one_batch
from tensorlens.analysis.training.timeline import GRAD_READ
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step

_MIN_ROUNDS = 3
_LAST = 2  # functions of a loss that are compared
_MAX_DEPTH = 4  # calls between a gradient and what is added to its parameter
_SUBTRACTING = frozenset("sub isub subtract foreach_sub".split())
_NEGATING = ("neg", "negative", "foreach_neg")
_SCALED = frozenset("mul rmul imul multiply foreach_mul div truediv".split())


@dataclass(frozen=True, slots=True)
class KeptAscent:
    """A line that moves parameters for a second backward pass of each round, as sharpness-aware minimization does."""

    write: Call
    second: Backward
    step: Step
    rows: tuple[ParameterRow, ...]
    rounds: int


def kept_ascents(training: MeasuredTraining) -> Iterator[KeptAscent]:
    """Yields these lines, each once. In each round it is the only write to a parameter besides the step."""
    lines: dict[int, list[tuple[ParameterRow, list[tuple[Call, Backward, Step]]]]] = defaultdict(list)
    for row in training.rows:
        if row.is_stepped:
            rounds = list(_rounds(training, row.tensor))
            sites = {write.site for write, _, _ in rounds}
            if len(rounds) >= _MIN_ROUNDS and len(sites) == 1:
                lines[sites.pop()].append((row, rounds))
    for found in lines.values():
        write, second, step = found[0][1][-1]
        yield KeptAscent(write, second, step, tuple(row for row, _ in found), len(found[0][1]))


@dataclass(frozen=True, slots=True)
class InnerUpdate:
    """A line that moves parameters along the results of `autograd.grad()` before each step of their optimizer."""

    write: Call
    gradient: Call  # `autograd.grad()`
    step: Step
    rows: tuple[ParameterRow, ...]
    rounds: int


def inner_updates(training: MeasuredTraining) -> Iterator[InnerUpdate]:
    """Yields these lines, each once. Between two steps no other line writes to the parameters."""
    lines: dict[int, list[tuple[ParameterRow, Call, list[tuple[Call, Step]]]]] = defaultdict(list)
    for row in training.rows:
        steps = [step for step in training.training.steps if row.tensor in step.parameters] if row.is_stepped else []
        writes = training.writes(row.tensor) if len(steps) > _MIN_ROUNDS else []
        if not writes or len({place_of(training.facts.trace.sites[write.site]) for write in writes}) != 1:
            continue
        gradient = _differentiated_by(training, writes[0], row.tensor)
        rounds = [(own[0], step) for before, step in pairwise(steps)
                  if (own := [write for write in writes if before.index < write.index < step.index])]  # fmt: skip
        is_one_loss = gradient is not None and bool(rounds) and _is_one_loss(training, gradient, row.tensor, rounds[0])
        if gradient is not None and len(rounds) == len(steps) - 1 and is_one_loss:
            lines[writes[0].site].append((row, gradient, rounds))
    for found in lines.values():
        _, gradient, rounds = found[0]
        write, step = rounds[-1]
        yield InnerUpdate(write, gradient, step, tuple(row for row, *_ in found), len(rounds))


def _is_one_loss(training: MeasuredTraining, gradient: Call, number: int, first: tuple[Call, Step]) -> bool:
    """Returns whether `autograd.grad()` and the pass before a step differentiate losses that the same functions make.

    A descent for another loss, as a penalty with an update of its own, is no inner loop."""
    facts, (write, step) = training.facts, first
    moments = training.training.moments.get(number, ())
    fills = [moment.event for moment in moments if moment.kind == "fill" and isinstance(moment.event, Backward)]
    fills = [each for each in fills if write.index < each.index < step.index]
    calls = [each for each in facts.calls_between(write.index, step.index) if each.op == gradient.op and each.inputs]
    if fills and fills[-1].roots:
        other, index = fills[-1].roots[0].tensor, fills[-1].index
    elif calls:  # the script gives the step the results of `autograd.grad()`
        other, index = calls[-1].inputs[0].tensor, calls[-1].index
    else:
        return False
    one = _last_functions(facts, gradient.inputs[0].tensor, gradient.index) if gradient.inputs else []
    return one == _last_functions(facts, other, index)


def _last_functions(facts: TraceIndex, number: int, before: int) -> list[str]:
    """Returns the functions that a loss comes from, the last first."""
    names: list[str] = []
    while len(names) < _LAST and (made := next(iter(facts.producers(number, before)), None)) is not None:
        names.append(op_name(made))
        if not made.inputs:
            break
        number, before = made.inputs[0].tensor, made.index
    return names


def _differentiated_by(training: MeasuredTraining, write: Call, number: int) -> Call | None:
    """Finds the call of `autograd.grad()` whose results a write adds to a parameter."""
    facts = training.facts
    shape = facts.tensor(number).shape
    waiting = [(access.tensor, write.index, 0) for access in write.inputs if access.tensor != number]
    for at, before, depth in waiting:
        made = next(iter(facts.producers(at, before)), None) if facts.tensor(at).shape == shape else None
        if made is not None and made.op == "autograd.grad":
            return made
        if made is not None and depth < _MAX_DEPTH:
            waiting += [(each.tensor, made.index, depth + 1) for each in made.inputs if each.tensor != number]
    return None


def _rounds(training: MeasuredTraining, number: int) -> Iterator[tuple[Call, Backward, Step]]:
    """Yields (write, second pass, step) of the rounds; nothing if a round has other writes, too."""
    timeline = training.training
    steps = [step for step in timeline.steps if number in step.parameters]
    fills = [
        moment.event
        for moment in timeline.moments.get(number, ())
        if moment.kind == "fill" and isinstance(moment.event, Backward)
    ]
    writes = training.writes(number)
    found: list[tuple[Call, Backward, Step]] = []
    for before, step in pairwise(steps):
        own = [write for write in writes if before.index < write.index < step.index]
        passes = [each for each in fills if before.index < each.index < step.index]
        lines = {place_of(training.facts.trace.sites[write.site]) for write in own}
        if len(lines) != 1 or len(passes) < 2 or not passes[0].index < own[0].index <= own[-1].index < passes[-1].index:
            return
        if not _is_along_gradient(training, own[0], number):
            return
        found.append((own[0], passes[bisect_left([each.index for each in passes], own[0].index)], step))
        if len(found) == 1 and not is_one_batch(training, before, *found[0][:2]):
            return
    yield from found


def _is_along_gradient(training: MeasuredTraining, write: Call, number: int) -> bool:
    """Returns whether a write adds what was computed from the gradient of the same parameter, and does not subtract it:
    that is a step of a descent."""
    facts, gradient_of = training.facts, training.training.gradient_of
    if op_name(write) in ("copy", "set"):
        copied = copied_tensor(facts, write.inputs[-1].tensor, write.index)
        if copied != number and facts.tensor(copied).type.endswith("Parameter"):
            return False  # the values of another module replace them
    shape = facts.tensor(number).shape
    waiting = [(access.tensor, write, 0, 1) for access in write.inputs if access.tensor != number]
    for at, user, depth, sign_after in waiting:
        if facts.tensor(at).shape != shape:
            continue  # a norm, by which the gradient is divided
        sign = sign_after * _sign(facts, user, at)
        if gradient_of.get(at) == number:
            return sign > 0
        made = next(iter(facts.producers(at, user.index)), None)
        if made is not None and made.op != GRAD_READ and depth < _MAX_DEPTH:
            waiting += [(each.tensor, made, depth + 1, sign) for each in made.inputs if each.tensor != number]
    return False


def _sign(facts: TraceIndex, call: Call, number: int) -> int:
    """Returns -1 if a call subtracts a tensor, or the source shows that it multiplies it by a negative number."""
    name, node = op_name(call), facts.node_at(call.site)
    sign = -1 if name in _NEGATING or (name in _SUBTRACTING and call.inputs[0].tensor != number) else 1
    if name in _SCALED and len({access.tensor for access in call.inputs}) == 1:
        return sign * factor_sign(facts, call)
    factors = (
        [each.value for each in node.keywords if each.arg in ("alpha", "value")] if isinstance(node, ast.Call) else []
    )
    return -sign if any(_is_negative(facts, call, each) for each in factors) else sign


def _is_negative(facts: TraceIndex, call: Call, factor: ast.expr) -> bool:
    span = facts.span(call.site)
    number = None if span is None else number_of(facts, span.file, factor)
    if number is None:  # a rate, as the scale of an ascent, has no sign of its own
        return isinstance(factor, ast.UnaryOp) and isinstance(factor.op, ast.USub)
    return number < 0
