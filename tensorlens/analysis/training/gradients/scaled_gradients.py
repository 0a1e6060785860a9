"""Finds gradients that a `GradScaler` has multiplied, and that are clipped or used before it divides them again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_gradients import is_clip
from tensorlens.analysis.training.cleared_gradients import calls_between
from tensorlens.analysis.training.gradients.clips_by_hand import clamps_values, clips_by_norm
from tensorlens.analysis.training.gradients.known_scales import uses_scale
from tensorlens.analysis.training.gradients.measuring_clips import only_measures
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.timeline import Moment
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step

_UNSCALE, SCALER_STEP = "GradScaler.unscale_", "GradScaler.step"


@dataclass(frozen=True, slots=True)
class ScaledGradients:
    """A call of clipping, or an optimizer step, that uses gradients of a multiplied loss as they are."""

    scaled: Call  # the product
    backward: Backward
    use: Call | Step


def scaled_gradients(training: MeasuredTraining) -> Iterator[ScaledGradients]:
    """Yields each line once. A script that asks the scaler for its scale may divide the gradients itself."""
    facts, timeline = training.facts, training.training
    products = {event.index: made for event in facts.backwards if (made := _product(facts, event)) is not None}
    if not products or uses_scale(facts):
        return
    divided = {access.tensor for call in facts.calls if call.op == SCALER_STEP for access in call.inputs}
    seen: set[int | None] = set()
    for leaf, moments in timeline.moments.items():
        filled: Moment | None = None
        for moment in moments:
            if moment.kind in ("fill", "clear"):
                filled = moment if moment.index in products else None
            elif filled is not None and moment.event.site not in seen and _is_use(training, moment, leaf in divided):
                if not _is_divided(facts, leaf, filled.index, moment.index):
                    seen.add(moment.event.site)
                    assert isinstance(filled.event, Backward)
                    assert not isinstance(moment.event, Backward)
                    yield ScaledGradients(products[filled.index], filled.event, moment.event)
            elif moment.kind == "touch" and not _is_clip(training, moment):
                filled = None


def _product(facts: TraceIndex, backward: Backward) -> Call | None:
    """Returns the product that `scaler.scale(loss)` made as the loss of a pass. A disabled scaler makes none."""
    root = backward.roots[0].tensor if len(backward.roots) == 1 else None
    made = None if root is None else next(iter(facts.producers(root, backward.index)), None)
    span = None if made is None or made.op != "Tensor.mul" or len(made.inputs) != 2 else facts.span(made.site)
    node = None if span is None else facts.names.syntax.node(span)
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)] if node is not None else []
    names = {each.func.attr for each in calls if isinstance(each.func, ast.Attribute)}
    return made if "scale" in names else None


def _is_use(training: MeasuredTraining, moment: Moment, is_divided: bool) -> bool:
    """Returns whether a moment is clipping of what the scaler divides, or a step on what it never divides."""
    if moment.kind == "touch":
        clips = is_divided and isinstance(moment.event, Call) and _is_clip(training, moment)
        return clips and not only_measures(training.facts, moment.event.site)
    return moment.kind == "update" and not is_divided and isinstance(moment.event, Step)


def _is_clip(training: MeasuredTraining, moment: Moment) -> bool:
    """Returns whether a line clips gradients by a function of PyTorch, or by hand."""
    if moment.event.site is not None and is_clip(training, moment.event.site):
        return True
    return clips_by_norm(training.training, moment) or clamps_values(training.training, moment)


def _is_divided(facts: TraceIndex, leaf: int, first: int, last: int) -> bool:
    calls = (call for call in calls_between(facts, first, last) if call.op == _UNSCALE)
    return any(access.tensor == leaf for call in calls for access in call.inputs)
