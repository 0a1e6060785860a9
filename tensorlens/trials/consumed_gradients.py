"""Compares the gradients that two runs of a program train with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from math import isfinite

from tensorlens.records.reference import StepSample, compare, distance
from tensorlens.trials.observed_run import ObservedRun


def difference(run: ObservedRun, right: ObservedRun) -> str:
    """Says where the gradients that a run trains with first differ from those of another; "" if none does.

    They are those that optimizer steps use; without any step, those of all backward passes.
    """
    if not run.steps and not right.steps:
        return _of_passes(run, right)
    for number, (step, other) in enumerate(zip_longest(run.steps, right.steps), start=1):
        if step is None or other is None:
            steps = "step" if len(run.steps) == 1 else "steps"
            return f"{len(run.steps)} optimizer {steps} instead of {len(right.steps)}"
        if step.optimizer != other.optimizer or len(step.gradients) != len(other.gradients):
            return f"step {number} is of another optimizer, or of other parameters"
        if text := _of_step(run, step, other, number):
            return text
    return ""


def inexact(run: ObservedRun, copied: ObservedRun) -> str:
    """Says which gradient is not that of its forward pass, as the same run with copies has it; "" if none is known."""
    if run.steps or compare(run.passes, copied.passes).differences:
        return difference(run, copied)
    return ""


def _of_step(run: ObservedRun, step: StepSample, other: StepSample, number: int) -> str:
    """Describes the largest relative difference in one step; "" if there is none."""
    found: list[tuple[float, float, int]] = []
    for position, ((_, got, _), (_, right, _)) in enumerate(zip(step.gradients, other.gradients, strict=True)):
        off = distance(got, right)
        if off is not None:
            largest, relative = off
            found.append((relative, largest, position))
    if not found:
        return ""
    relative, largest, position = max(found, key=lambda each: (each[0] != each[0], *each))
    where = f"step {number}: the gradient of {run.parameter(step, position)}"
    if step.gradients[position][1] is None:
        return f"{where} is missing"
    if other.gradients[position][1] is None:
        return f"{where} is there, and was not"
    return f"{where} {_amount(largest, relative)}"


def _amount(largest: float, relative: float) -> str:
    """Returns "differs by 0.02 (5 %)"."""
    percent = relative * 100
    share = f" ({percent:.0f} %)" if percent >= 10 else f" ({percent:.2g} %)"
    return f"differs by {largest:.2g}{share if isfinite(relative) else ''}"


def _of_passes(run: ObservedRun, right: ObservedRun) -> str:
    compared = compare(run.passes, right.passes)
    if compared.differences:
        worst = max(compared.differences, key=lambda each: each.relative)
        place = len(compared.compared)
        return f"backward pass {place}: a gradient {_amount(worst.largest, worst.relative)}"
    return compared.reason


def harm(run: ObservedRun, before: ObservedRun, more_passes: bool = False) -> str:
    """Says what a run takes from the training, or adds to it, compared with an earlier run; "" if nothing.

    A parameter that had a gradient must keep it, each step must happen, and no step may use the gradients of more
    backward passes, unless `more_passes`. Only what both runs have reached is compared, unless the earlier one ended
    well.
    """
    steps, others = run.by_optimizer(), before.by_optimizer()
    for optimizer, former in others.items():
        mine = steps.get(optimizer, [])
        if before.ended_well and len(mine) < len(former):
            return f"an optimizer takes {len(mine)} steps instead of {len(former)}"
        for step, other in zip(mine, former, strict=False):
            for text in _lost(run, step, other):
                return text
            for text in () if more_passes else _added(run, step, other):
                return text
    if not others and _leaves_with_gradients(run) < _leaves_with_gradients(before):
        return "a leaf that had a gradient has none"
    return ""


def _lost(run: ObservedRun, step: StepSample, other: StepSample) -> Iterator[str]:
    for position, ((_, got, _), (_, had, _)) in enumerate(zip(step.gradients, other.gradients, strict=False)):
        if got is None and had is not None:
            yield f"{run.parameter(step, position)} loses its gradient"
    if len(step.gradients) < len(other.gradients):
        yield "an optimizer has fewer parameters"


def _added(run: ObservedRun, step: StepSample, other: StepSample) -> Iterator[str]:
    for position, ((_, got, passes), (_, had, former)) in enumerate(zip(step.gradients, other.gradients, strict=False)):
        if got is not None and had is not None and passes > former:
            yield f"a step uses the gradients of {passes} backward passes for {run.parameter(step, position)}"


def _leaves_with_gradients(run: ObservedRun) -> int:
    return max((sum(place >= 0 for place in each.gradients) for each in run.passes), default=0)


def untrained(run: ObservedRun) -> str:
    """Names the parameters of optimizers that never have a gradient; "" if all have one."""
    for steps in run.by_optimizer().values():
        positions = range(len(steps[0].gradients))
        never = [n for n in positions if all(len(s.gradients) > n and s.gradients[n][1] is None for s in steps)]
        if never:
            more = f" and {len(never) - 1} more" if len(never) > 1 else ""
            return f"{run.parameter(steps[0], never[0])}{more} never {'have' if more else 'has'} a gradient"
    return ""
