"""Finds backward passes that a program makes for the gradient of an input, and that fill parameters too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.timeline import GRAD_READ, Moment, Training
from tensorlens.records.model import Backward
from tensorlens.records.observations import Step

_SCALING = frozenset("mul rmul imul div truediv itruediv".split())
_MIN_STEPS = 2
_MIN_PASSES = 2  # before one step


@dataclass(frozen=True, slots=True)
class PassesForInputs:
    """Passes of one line whose gradients a step uses with those of the pass of another line."""

    first: Backward
    other: Backward  # the pass of the other line
    step: Step
    count: int  # passes before the step
    steps: int  # steps with such passes
    input: int  # the leaf that the script reads the gradient of
    parameters: tuple[int, ...]


def passes_for_inputs(training: Training) -> Iterator[PassesForInputs]:
    """Yields these passes, one for each line.

    The leaf is none of an optimizer, the script reads its `.grad`, and the pass of the other line gives it none. One
    such pass before a step may be meant: its gradients of the parameters are those of a loss, too.
    """
    found: dict[int, dict[int, tuple[list[Backward], Backward, Step]]] = {}
    reached: dict[int, list[int]] = {}
    for number in training.stepped:
        for fills, step in _rounds(training.moments.get(number, ())):
            counts = Counter(fill.site for fill in fills)
            for site, count in counts.items():
                others = [fill for fill in fills if counts[fill.site] == 1 and fill.site != site]
                mine = [fill for fill in fills if fill.site == site]
                if count >= _MIN_PASSES and others and others[-1].index > mine[-1].index:
                    found.setdefault(site, {})[step.index] = mine, others[-1], step
                    if number not in reached.setdefault(site, []):
                        reached[site].append(number)
    read = _leaves_read(training)
    for site, by_step in found.items():
        inputs = [_input(training, read, mine, other) for mine, other, _ in by_step.values()]
        if len(by_step) >= _MIN_STEPS and None not in inputs and inputs[0] is not None:
            mine, other, step = max(by_step.values(), key=lambda each: len(each[0]))
            if any(_has_factor(training, each) for each in (*mine, other)):
                continue  # the losses of all passes are parts of one, as in FreeLB
            yield PassesForInputs(mine[0], other, step, len(mine), len(by_step), inputs[0], tuple(reached[site]))


def _rounds(moments: list[Moment] | tuple[()]) -> Iterator[tuple[list[Backward], Step]]:
    """Yields the passes that filled a leaf since it was cleared, for each step that used them."""
    fills: list[Backward] = []
    for moment in moments:
        if moment.kind == "fill" and isinstance(moment.event, Backward):
            fills.append(moment.event)
        elif moment.kind == "update" and isinstance(moment.event, Step):
            if fills:
                yield fills, moment.event
            fills = []
        elif moment.kind == "clear":
            fills = []


def _has_factor(training: Training, backward: Backward) -> bool:
    """Returns whether a number scales the loss of a pass."""
    facts = training.facts
    reduced = (each for each in facts.trace.inspection.reduced if each.index == backward.started)
    if any(each.factor not in (1, -1) for each in reduced):
        return True
    made = next((call for root in backward.roots for call in facts.producers(root.tensor, backward.index)[:1]), None)
    return made is not None and op_name(made) in _SCALING


def _leaves_read(training: Training) -> set[int]:
    """Returns the leaves whose gradients the script's own lines read, and that no optimizer holds."""
    held = {number for step in training.steps for number in step.parameters}
    reads = (call for call in training.facts.calls if call.op == GRAD_READ and not call.within)
    return {call.inputs[0].tensor for call in reads} - held


def _input(training: Training, read: set[int], passes: list[Backward], other: Backward) -> int | None:
    """Returns the input that each of some passes gave a gradient, or the first if each has its own."""
    by_pass = [[change.tensor for change in each.gradients if change.tensor in read] for each in passes]
    given = {change.tensor for change in other.gradients}
    if not all(by_pass) or any(number in given for numbers in by_pass for number in numbers):
        return None
    number = by_pass[0][0]
    return None if training.facts.tensor(number).type == "Parameter" else number
