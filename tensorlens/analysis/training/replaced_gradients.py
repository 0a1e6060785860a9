"""Finds lines that set the gradient of parameters several times before a step, which uses only the last one."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import parent_of, statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.training.best_so_far import stored_pairs
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.timeline import GRAD_READ, GRAD_SET, Moment, Training
from tensorlens.analysis.unseen_reads import may_be_read_unseen
from tensorlens.records.model import Call
from tensorlens.records.observations import Step

_OUTSIDE = frozenset("tensor as_tensor asarray from_numpy frombuffer item tolist numpy".split())
_LOOKED_AT = 16  # steps, of one parameter


@dataclass(frozen=True, slots=True)
class ReplacedGradient:
    """A parameter, a call that sets its gradient, a step that uses it, and how many there were for the step."""

    parameter: int
    setting: Call
    step: Step
    count: int  # gradients that the line sets for one step


def replaced_gradients(training: Training) -> Iterator[ReplacedGradient]:
    """Yields these, each parameter once: nothing reads the gradients that another one replaces, at nearly all steps
    looked at that use a gradient of the line."""
    reads = _reads(training)
    for number in training.stepped:
        steps = [pair for pair in _settings(training, number) if pair[0]][:_LOOKED_AT]
        lost = [pair for pair in steps if _are_lost(training, number, pair[0], reads)]
        if (
            lost and 4 * len(lost) >= 3 * len(steps) and not _is_shown(training, lost[0][0][0])
        ):  # a long run lacks some of the first ones
            settings, step = lost[0]
            counts = Counter(len(each) for each, _ in lost)
            yield ReplacedGradient(number, settings[-1], step, counts.most_common(1)[0][0])


def _is_shown(training: Training, setting: Call) -> bool:
    """Returns whether a line may show or store the gradient that a call sets, without a call that is recorded."""
    made = [training.facts.creator(access.tensor) for access in setting.inputs[1:]]
    return any(call is not None and may_be_read_unseen(training.facts, call) for call in made)


def _settings(training: Training, number: int) -> Iterator[tuple[list[Call], Step]]:
    """Yields for each step that uses a gradient the calls that have set one since the step before, if only they did."""
    since: list[Moment] = []
    for moment in training.moments.get(number, ()):
        if not isinstance(moment.event, Step):
            since.append(moment)
            continue
        last = [each.event for each in _after_clearing(since) if isinstance(each.event, Call)]
        is_one_line = len({call.site for call in last}) == 1 and all(call.op == GRAD_SET for call in last)
        if is_one_line and len(last) == len(_after_clearing(since)):
            yield last, moment.event
        since = []


def _after_clearing(moments: list[Moment]) -> list[Moment]:
    place = max((place for place, moment in enumerate(moments) if moment.kind == "clear"), default=-1)
    return moments[place + 1 :]


def _are_lost(training: Training, number: int, settings: list[Call], reads: dict[int, list[int]]) -> bool:
    """Returns whether nothing reads a gradient between the call that sets it and the one that sets the next."""
    if len(settings) < 2 or any(settings[0].index < index < settings[-1].index for index in reads[number]):
        return False
    gradients = {access.tensor for call in settings[:-1] for access in call.inputs[1:]}
    settled = {call.index for call in settings}
    between = training.facts.calls_between(settings[0].index + 1, settings[-1].index)
    if not _is_of_last_round(training, settings) or _is_best(training, settings[-1]):
        return False
    return not any(
        access.tensor in gradients for call in between if call.index not in settled for access in call.inputs
    )


def _is_best(training: Training, setting: Call) -> bool:
    """Returns whether a condition chooses the round whose gradient counts, by a number that it keeps:
    `if loss > worst: worst = loss`."""
    facts, span = training.facts, training.facts.span(setting.site)
    above: ast.AST | None = None if span is None else statement_around(facts, span)
    while span is not None and above is not None and not isinstance(above, ast.FunctionDef):
        if isinstance(above, ast.If) and isinstance(above.test, ast.Compare):
            order = isinstance(above.test.ops[0], ast.Lt | ast.Gt | ast.LtE | ast.GtE)
            sides = {last_name(side) for side in (above.test.left, *above.test.comparators)}
            kept = {last_name(target) for node in above.body for target, _ in _assigned(node)}
            if order and sides & kept - {None}:
                return True
        above = parent_of(facts, span.file, above)
    return False


def _assigned(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    return stored_pairs(node) if isinstance(node, ast.Assign) else iter(())


def _is_of_last_round(training: Training, settings: list[Call]) -> bool:
    """Returns whether the last gradient is computed from nothing that was computed before the one before it was set, as
    a sum over the rounds would be."""
    facts, last = training.facts, settings[-1]
    since = max((step.index for step in training.steps if step.index < settings[0].index), default=-1)
    above = [call for access in last.inputs[1:] for _, call in ancestry(facts, access.tensor, last.index)]
    above = [call for call in above if not call.writes]  # as those of a step
    return _is_known(last, above) and not any(since < call.index < settings[-2].index for call in above)


def _is_known(setting: Call, above: list[Call]) -> bool:
    """Returns whether a gradient is computed from another one, or from the parameter itself, as its difference from
    what a copy was trained to. What comes from outside of PyTorch may have been summed there."""
    if any(call.op == "autograd.grad" or call.op == GRAD_READ for call in above):
        return True
    is_outside = any(op_name(call) in _OUTSIDE for call in above)
    parameter = setting.inputs[0].tensor
    return not is_outside and any(access.tensor == parameter for call in above for access in call.inputs)


def _reads(training: Training) -> dict[int, list[int]]:
    """Maps each leaf to the indices of the calls that read its `.grad`."""
    found: dict[int, list[int]] = defaultdict(list)
    for call in training.facts.calls:
        if call.op == GRAD_READ and call.inputs:
            found[call.inputs[0].tensor].append(call.index)
    return found
