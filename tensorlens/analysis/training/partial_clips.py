"""Finds calls that clip gradients between the backward passes whose gradients one step adds up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.training.changed_gradients import is_clip
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.timeline import Moment
from tensorlens.records.model import Backward
from tensorlens.records.observations import Step

_MIN_STEPS = 2


@dataclass(frozen=True, slots=True)
class PartialClip:
    """A line that clips the sum of the gradients so far, after each of several passes of another line."""

    clip: Moment  # the first one
    backward: Backward
    step: Step
    passes: int  # the most that one step adds up


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
                is_clipped = moment.event.site is not None and is_clip(training, moment.event.site)
                waiting = [moment] if fills and is_clipped else []
            else:
                first = clips[0] if clips else None
                step, backward = moment.event, fills[-1].event if fills else None
                if first is not None and isinstance(step, Step) and isinstance(backward, Backward):
                    site = first.event.site or 0
                    found.setdefault(site, []).append(PartialClip(first, backward, step, len(fills)))
                    steps.setdefault(site, set()).add(step.index)
                fills, clips, waiting = [], [], []
    for site, each in found.items():
        if len(steps[site]) >= _MIN_STEPS:
            most = max(each, key=lambda one: one.passes)
            yield most
