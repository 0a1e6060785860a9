"""Finds calls that clip or scale gradients between the backward passes whose gradients one step adds up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.code_around import scope_around, statement_around
from tensorlens.analysis.naming.syntax import called_name, plain_name
from tensorlens.analysis.training.changed_gradients import is_clip
from tensorlens.analysis.training.gradients.clips_by_hand import clamps_values, scales_gradient
from tensorlens.analysis.training.gradients.measuring_clips import only_measures
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.timeline import Moment
from tensorlens.analysis.written_numbers import only_value
from tensorlens.records.model import Backward
from tensorlens.records.observations import Step

_DIVISIONS = frozenset("div true_divide divide foreach_div".split())
_MIN_STEPS = 2


@dataclass(frozen=True, slots=True)
class PartialClip:
    """A line that clips or scales the sum of the gradients so far, after each of several passes of another line."""

    clip: Moment  # the first one
    backward: Backward
    step: Step
    passes: int  # the most that one step adds up
    scales: bool  # it multiplies the gradients, or divides them
    calling: int | None  # the line in the function of the backward pass that calls the function with the clip


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
                waiting = [moment] if fills and _changes(training, moment) else []
            else:
                first = clips[0] if clips else None
                if first is not None and not waiting and not _clips(training, first):
                    first = None  # the last pass is not scaled: a sum in which earlier passes count less
                step, backward = moment.event, fills[-1].event if fills else None
                if first is not None and isinstance(step, Step) and isinstance(backward, Backward):
                    site = first.event.site or 0
                    calling, scales = _calling(training, first, backward), not _clips(training, first)
                    found.setdefault(site, []).append(PartialClip(first, backward, step, len(fills), scales, calling))
                    steps.setdefault(site, set()).add(step.index)
                fills, clips, waiting = [], [], []
    for site, each in found.items():
        if len(steps[site]) >= _MIN_STEPS:
            most = max(each, key=lambda one: one.passes)
            yield most


def _changes(training: MeasuredTraining, moment: Moment) -> bool:
    if _clips(training, moment):
        return True
    return scales_gradient(training.training, moment) and _is_divided(training, moment)


def _is_divided(training: MeasuredTraining, moment: Moment) -> bool:
    """Returns whether a line divides. A factor may be that of a trace, in which earlier passes count less.

    It is no count over a larger one, as of a mean that goes on with each pass: `p.grad.mul_(k / (k + 1))`,
    `seen / (seen + len(x))`, `1 - 1 / count`.
    """
    nodes = _nodes(training, moment)
    divides = any(isinstance(each, ast.Div) or called_name(each).strip("_") in _DIVISIONS for each in nodes)
    return divides and not any(isinstance(each, ast.BinOp) and _has_count_twice(each) for each in nodes)


def _nodes(training: MeasuredTraining, moment: Moment) -> list[ast.AST]:
    """Returns the parts of the statement of a moment, and of what the only lines that set its names give."""
    facts = training.facts
    span = None if moment.event.site is None else facts.span(moment.event.site)
    node = None if span is None else statement_around(facts, span)
    nodes = [] if node is None else list(ast.walk(node))
    given = [only_value(facts, each.id) for each in nodes if isinstance(each, ast.Name)]
    return nodes + [part for value in given if value is not None for part in ast.walk(value)]


def _has_count_twice(node: ast.BinOp) -> bool:
    if isinstance(node.op, ast.Sub):
        is_rest = isinstance(node.right, ast.BinOp) and isinstance(node.right.op, ast.Div)
        is_one = isinstance(node.left, ast.Constant) and node.left.value == 1
        return is_rest and is_one and not isinstance(node.right.right, ast.Constant)  # type: ignore[attr-defined]
    return isinstance(node.op, ast.Div) and bool(_counts(node.left) & _counts(node.right))


def _counts(node: ast.expr) -> set[str]:
    """Returns the names that a sum or a product adds or multiplies."""
    if isinstance(node, ast.BinOp):
        return _counts(node.left) | _counts(node.right)
    name = plain_name(node)
    return set() if name is None else {name}


def _clips(training: MeasuredTraining, moment: Moment) -> bool:
    if moment.event.site is not None and is_clip(training, moment.event.site):
        return not only_measures(training.facts, moment.event.site)
    return clamps_values(training.training, moment, unknown=True)


def _calling(training: MeasuredTraining, clip: Moment, backward: Backward) -> int | None:
    """Returns the line that called the function with a clip, in the function that runs the backward pass."""
    facts, own = training.facts, _scope(training, backward.site)
    if clip.event.site is None or own is None or _scope(training, clip.event.site) is own:
        return None
    outer = caller_lines(facts.trace).recorded(clip.event.site)
    return next((site for site in outer if _scope(training, site) is own), None)


def _scope(training: MeasuredTraining, site: int) -> ast.AST | None:
    """Returns the function, or the module, with a line."""
    span = training.facts.span(site)
    return None if span is None else scope_around(training.facts, span.file, span.line)
