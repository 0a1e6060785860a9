"""Finds calls that clip or scale gradients between the backward passes whose gradients one step adds up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.training.changed_gradients import is_clip
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.timeline import Moment
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step

_MIN_STEPS = 2


@dataclass(frozen=True, slots=True)
class PartialClip:
    """A line that clips or scales the sum of the gradients so far, after each of several passes of another line."""

    clip: Moment  # the first one
    backward: Backward
    step: Step
    passes: int  # the most that one step adds up
    scales: bool  # it multiplies the gradients, or divides them


def partial_clips(training: MeasuredTraining) -> Iterator[PartialClip]:
    """Yields these lines, if two steps or more add up passes with a call of the line between them."""
    found: dict[int, list[PartialClip]] = {}
    steps: dict[int, set[int]] = {}
    for moments in training.training.moments.values():
        fills: list[Moment] = []
        clips: list[Moment] = []  # those after which another pass of the same line came
        waiting: list[Moment] = []
        for moment in moments:
            if moment.kind == "fill":
                clips += waiting if fills and moment.event.site == fills[-1].event.site else []
                fills.append(moment)
                waiting = []
            elif moment.kind == "touch":
                waiting = [moment] if fills and (_clips(training, moment) or _scales(moment)) else []
            else:
                first = clips[0] if clips else None
                step, backward = moment.event, fills[-1].event if fills else None
                if first is not None and isinstance(step, Step) and isinstance(backward, Backward):
                    site = first.event.site or 0
                    found.setdefault(site, []).append(
                        PartialClip(first, backward, step, len(fills), not _clips(training, first))
                    )
                    steps.setdefault(site, set()).add(step.index)
                fills, clips, waiting = [], [], []
    for site, each in found.items():
        if len(steps[site]) >= _MIN_STEPS:
            most = max(each, key=lambda one: one.passes)
            yield most


def _clips(training: MeasuredTraining, moment: Moment) -> bool:
    return moment.event.site is not None and is_clip(training, moment.event.site)


def _scales(moment: Moment) -> bool:
    """Returns whether a line of the script multiplies a gradient, or divides it, in place."""
    event = moment.event
    return isinstance(event, Call) and not event.within and op_name(event) in ("mul", "div", "imul", "itruediv")
