"""Finds the lines that change gradients by hand, and the changes that no update uses."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import GRAD_SET, Moment
from tensorlens.records.model import Call

_MIN_UNUSED = 2  # changes
CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grads_with_norm_")


@dataclass(frozen=True, slots=True)
class GradientChange:
    """A line that changes the gradients of some leaves.

    `is_late`: it does so after the update that used them, and the script clears them before another one. `is_unused`:
    no update has used them, and the script clears them before one does.
    """

    call: Call  # the first change
    leaves: frozenset[int]
    is_late: bool
    is_unused: bool


@lru_cache(maxsize=1)
def gradient_changes(training: MeasuredTraining) -> tuple[GradientChange, ...]:
    """Finds the lines of the script that change gradients that backward has filled."""
    first: dict[int, Call] = {}
    leaves: dict[int, set[int]] = defaultdict(set)
    late: dict[int, list[bool]] = defaultdict(list)
    unused: dict[int, list[bool]] = defaultdict(list)
    timeline = training.training
    for leaf, moments in timeline.moments.items():
        rest = [moment for moment in moments if not _is_touch(moment)]
        for moment in filter(_is_touch, moments):
            call = moment.event
            assert isinstance(call, Call)
            before, after = _around(rest, moment)
            if before is None or before.kind not in ("fill", "update"):
                continue
            first.setdefault(call.site, call)
            leaves[call.site].add(leaf)
            is_before_step = before.kind == "fill" or not before.fresh
            if after is not None:
                is_dropped = after.kind == "clear" and not _is_read(training, leaf, moment, after)
                unused[call.site].append(is_before_step and is_dropped)
                late[call.site].append(not is_before_step and is_dropped)
            elif is_before_step:
                late[call.site].append(False)
    sure = is_complete(training.facts.trace) and not timeline.is_hidden
    return tuple(
        GradientChange(
            call,
            frozenset(leaves[site]),
            sure and bool(late[site]) and all(late[site]),
            sure and len(unused[site]) >= _MIN_UNUSED and all(unused[site]),
        )
        for site, call in first.items()
    )


def _is_touch(moment: Moment) -> bool:
    return moment.kind == "touch" and isinstance(moment.event, Call) and not moment.event.within


def _is_read(training: MeasuredTraining, leaf: int, touch: Moment, clear: Moment) -> bool:
    """Returns whether another line computes with a changed gradient before it is cleared."""
    facts, gradient_of = training.facts, training.training.gradient_of
    between = facts.events[facts.trace.position(touch.index) : facts.trace.position(clear.index)]
    sites = (touch.event.site, clear.event.site)
    calls = (event for event in between if isinstance(event, Call) and event.op != GRAD_SET)
    others = (call for call in calls if call.site not in sites)
    return any(gradient_of.get(access.tensor) == leaf for call in others for access in call.inputs)


def idle_clips(training: MeasuredTraining) -> Iterator[tuple[Call, bool]]:
    """Yields the calls of PyTorch's clipping that change no gradient in any run of their line, each line's first.

    With True they find only gradients that the script has set to zero, with False none at all.
    """
    facts, timeline = training.facts, training.training
    sites = {site for site in {call.site for call in facts.calls if not call.within} if is_clip(training, site)}
    clips: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls if sites else ():
        if not call.within and call.site in sites:
            clips[call.site].append(call)
    if not clips or not is_complete(facts.trace) or timeline.is_hidden or not facts.backwards:
        return
    changed: dict[int, set[bool]] = defaultdict(set)  # site -> whether what it changed was set to zero before
    for moments in timeline.moments.values():
        rest = [moment for moment in moments if not _is_touch(moment)]
        for moment in filter(_is_touch, moments):
            if moment.event.site in clips:
                changed[moment.event.site or 0].add(_is_zeroed(rest, moment))
    for site, calls in clips.items():
        if site not in changed and all(not call.inputs and not call.writes for call in calls):
            yield calls[0], False
        elif changed[site] == {True}:
            yield calls[0], True


def _is_zeroed(rest: list[Moment], touch: Moment) -> bool:
    before, after = _around(rest, touch)
    return before is not None and before.kind == "clear" and after is not None and after.kind == "fill"


def _around(moments: list[Moment], one: Moment) -> tuple[Moment | None, Moment | None]:
    """Returns the moments before and after another one."""
    at = bisect_left(moments, one.index, key=lambda each: each.index)
    return (moments[at - 1] if at else None), (moments[at] if at < len(moments) else None)


def is_clip(training: MeasuredTraining, site: int) -> bool:
    """Returns whether a line calls a function of PyTorch that clips gradients."""
    facts = training.facts
    node = facts.node_at(site)
    name = plain_name(node.func) if isinstance(node, ast.Call) else None
    return name is not None and name.rpartition(".")[2] in CLIPS
