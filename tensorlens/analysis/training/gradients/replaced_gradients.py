"""Finds lines that set the gradient of parameters several times before a step, which uses only the last one."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile

from tensorlens.analysis.code_around import parent_of, statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.training.best_so_far import stored_pairs
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.timeline import GRAD_READ, GRAD_SET, Moment, Training
from tensorlens.analysis.unseen_reads import may_be_read_unseen
from tensorlens.records.model import Backward, Call, Span
from tensorlens.records.observations import Step

_OUTSIDE = frozenset("tensor as_tensor asarray from_numpy frombuffer item tolist numpy".split())
_SCALING = frozenset("mul div clamp clamp_min clamp_max clamp_minimum clamp_maximum clip nan_to_num".split())
_LOOKED_AT = 16  # steps, of one parameter


@dataclass(frozen=True, slots=True)
class ReplacedGradient:
    """A parameter, a call that sets its gradient, a step that uses it, and how many there were for the step."""

    parameter: int
    setting: Call
    step: Step | Call
    count: int  # gradients that the line sets for one step


def replaced_gradients(training: Training) -> Iterator[ReplacedGradient]:
    """Yields these, each parameter once: nothing reads the gradients that another one replaces, at nearly all steps
    looked at that use a gradient of the line."""
    reads = _reads(training)
    for number in training.stepped:
        steps = [pair for pair in _settings(training, number) if pair[0]][:_LOOKED_AT]
        lost = [pair for pair in steps if _are_lost(training, number, pair, reads)]
        if (
            lost and 4 * len(lost) >= 3 * len(steps) and not _is_shown(training, lost[0][0][0])
        ):  # a long run lacks some of the first ones
            settings, step = lost[0]
            counts = Counter(len(each) for each, _ in lost)
            yield ReplacedGradient(number, settings[-1], step, counts.most_common(1)[0][0])


def _is_shown(training: Training, setting: Call) -> bool:
    """Returns whether a line may show or store the gradient that a call sets, without a call that is recorded."""
    made = [training.facts.creator(access.tensor) for access in setting.inputs[1:]]
    return any(call is not None and may_be_read_unseen(training.facts, call, in_containers=True) for call in made)


def _settings(training: Training, number: int) -> Iterator[tuple[list[Call], Step | Call]]:
    """Yields for each step that uses a gradient the calls that have set one since the step before, if only one line
    did: lines below it may scale or clip the last one."""
    since: list[Moment] = []
    for moment in training.moments.get(number, ()):
        if isinstance(moment.event, Backward) or not _is_step(moment.event, since):
            since.append(moment)
            continue
        last = _after_clearing(since)
        calls = [each.event for each in last if isinstance(each.event, Call) and each.kind == "touch"]
        settings = _of_one_line(calls) if len(calls) == len(last) else []
        below = [call for call in calls if settings and call.index > settings[-1].index]
        if settings and (not below or _is_last_in_step(training, number, settings, (below, moment.event))):
            yield settings, moment.event
        since = []


def _is_step(event: Call | Step, since: list[Moment]) -> bool:
    """Returns whether something is a step. After very many, a trace has only their calls, which are the first
    otherwise that follow a step."""
    return isinstance(event, Step) or (event.op.endswith(".step") and bool(since))


def _of_one_line(calls: list[Call]) -> list[Call]:
    """Returns the first of these calls, as long as they are of one line that sets a gradient. An assignment may have
    made the memory that another line copies the gradients into."""
    if len(calls) > 1 and calls[0].op == GRAD_SET and op_name(calls[1]) == "copy":
        calls = calls[1:]
    settings = [call for call in calls if call.site == calls[0].site and (call.op == GRAD_SET or _copies(call))]
    return settings if settings == calls[: len(settings)] else []


def _copies(call: Call) -> bool:
    """Returns whether a call copies into a whole gradient, and not into a part of it."""
    is_copy = op_name(call) == "copy" and len(call.inputs) == 2
    return is_copy and [write.tensor for write in call.writes] == [call.inputs[0].tensor]


def _is_last_in_step(
    training: Training, number: int, settings: list[Call], end: tuple[list[Call], Step | Call]
) -> bool:
    """Returns whether a step uses the last gradient, scaled or clipped by some calls, and none that was set before."""
    below, step = end
    if isinstance(step, Step):
        gradient = step.gradients[step.parameters.index(number)]
    else:
        gradient = step.inputs[1].tensor if len(step.inputs) > 1 else None
    if gradient is None or len(settings) < 2 or settings[-1].writes:
        return gradient is not None and all(op_name(call).removeprefix("foreach_") in _SCALING for call in below)
    above = [call for _, call in ancestry(training.facts, gradient, step.index)]
    read = {gradient} | {access.tensor for call in above for access in call.inputs}
    if not {access.tensor for access in settings[-1].inputs[1:]} & read or any(op_name(c) in _OUTSIDE for c in above):
        return False
    return not _is_of_rounds(training, settings, above)


def _after_clearing(moments: list[Moment]) -> list[Moment]:
    place = max((place for place, moment in enumerate(moments) if moment.kind == "clear"), default=-1)
    return list(dropwhile(lambda moment: moment.kind == "update", moments[place + 1 :]))


def _are_lost(
    training: Training, number: int, pair: tuple[list[Call], Step | Call], reads: dict[int, list[int]]
) -> bool:
    """Returns whether nothing reads a gradient between the call that sets it and the one that sets the next, and
    nothing reads what was set before the step."""
    settings, step = pair
    if len(settings) < 2 or any(settings[0].index < index < settings[-1].index for index in reads[number]):
        return False
    gradients = {access.tensor for call in settings[:-1] for access in call.inputs[1:]}
    written = {write.tensor for call in settings[:-1] for write in call.writes}
    settled = {call.index for call in settings}
    if not _is_of_last_round(training, number, settings) or _is_best(training, settings[-1]):
        return False
    return not any(
        access.tensor in gradients or (access.tensor in written and call.index < settings[-1].index)
        for call in training.facts.calls_between(settings[0].index + 1, step.index)
        if call.index not in settled
        for access in call.inputs
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


def _is_of_last_round(training: Training, number: int, settings: list[Call]) -> bool:
    """Returns whether the last gradient is computed from nothing that was computed before the one before it was set, as
    a sum over the rounds would be."""
    facts, last = training.facts, settings[-1]
    above = [call for access in last.inputs[1:] for _, call in ancestry(facts, access.tensor, last.index)]
    return _is_known(number, above) and not _is_of_rounds(training, settings, above)


def _is_of_rounds(training: Training, settings: list[Call], above: list[Call]) -> bool:
    """Returns whether one of these calls was made in a round before the last one. Of more than two rounds, the first
    need not be looked at, which what is computed once for all of them comes before."""
    before = (step.index for step in training.steps if step.index < settings[0].index)
    since = settings[0].index if len(settings) > 2 else max(before, default=-1)
    return any(since < call.index < settings[-2].index for call in above if not call.writes)  # a step writes


def _is_known(parameter: int, above: list[Call]) -> bool:
    """Returns whether a gradient is computed from another one, or from the parameter itself, as its difference from
    what a copy was trained to. What comes from outside of PyTorch may have been summed there."""
    above = [call for call in above if not call.writes]
    if any(call.op == "autograd.grad" or call.op == GRAD_READ for call in above):
        return True
    is_outside = any(op_name(call) in _OUTSIDE for call in above)
    return not is_outside and any(access.tensor == parameter for call in above for access in call.inputs)


def _reads(training: Training) -> dict[int, list[int]]:
    """Maps each leaf to the indices of the calls that read its `.grad`, without those that only copy into it."""
    found: dict[int, list[int]] = defaultdict(list)
    facts = training.facts
    begins = {_begin(facts.span(call.site)) for call in facts.calls if _copies(call)} - {None}
    for call in facts.calls:
        if call.op == GRAD_READ and call.inputs and _begin(facts.span(call.site)) not in begins:
            found[call.inputs[0].tensor].append(call.index)
    return found


def _begin(span: Span | None) -> tuple[str, int, int] | None:
    return None if span is None else (span.file, span.line, span.column)
