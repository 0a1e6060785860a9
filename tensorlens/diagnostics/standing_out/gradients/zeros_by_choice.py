"""Finds gradients of zeros that a program chooses: by a weight of 0, a hook, a setting of one, or a start at 0."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.constant_ratios import ConstantRatio
from tensorlens.analysis.training.gradients.sizes_of_one import is_of_setting
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.records.model import Call

_PRODUCTS = frozenset("mul rmul imul multiply".split())
_BY_WEIGHTS = _PRODUCTS | frozenset("linear matmul mm bmm einsum addmm conv1d conv2d".split())
_FEW_STEPS = 2  # a factor that starts at 0 is still 0 there, at the second for a rate that starts at 0


def is_of_choice(
    training: MeasuredTraining, row: ParameterRow, calls: Sequence[Call], ratios: list[ConstantRatio]
) -> bool:
    """Returns whether nothing but settings of the program makes the zeros of a parameter, by the calls that passed only
    zeros on to it; without such calls, whether a hook of the parameter may."""
    facts = training.facts
    if calls:
        others = (call for call in calls if not _is_switch(facts, call) and not _is_of_one(facts, call))
        return all(_is_start(training, row, call) for call in others)
    registered = facts.trace.callbacks.registrations
    if any(each.kind == "tensor hook" and each.target == row.tensor for each in registered):
        return True
    ratio = ratio_of(training, row.tensor, ratios)
    return ratio.is_of_setting if ratio is not None else _is_first(row)


def ratio_of(training: MeasuredTraining, leaf: int, ratios: list[ConstantRatio]) -> ConstantRatio | None:
    """Returns the first constant that is computed from a leaf."""
    facts = training.facts
    return next((each for each in ratios if leaf in graph_leaves(facts, each.value, each.call.index)), None)


def _is_switch(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call multiplies by a number, which is 0 as its gradient is, or by a tensor of one element
    without a graph."""
    if op_name(call) not in _PRODUCTS:
        return False
    others = [each.tensor for each in call.inputs if not facts.requires_grad(each.tensor, call.index - 1)]
    return len(call.inputs) == 1 or any(prod(facts.tensor(each).shape) == 1 for each in others)


def _is_first(row: ParameterRow) -> bool:
    return row.statistics is not None and row.statistics.filled <= _FEW_STEPS


def _is_start(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    """Returns whether a call multiplies by something that is trained, before more than a few steps: it starts at 0."""
    if op_name(call) not in _BY_WEIGHTS:
        return False
    trained = [each.tensor for each in call.inputs if training.facts.requires_grad(each.tensor, call.index - 1)]
    return (_is_first(row) and len(trained) > 1) or _is_before_steps(training, row, call)


def _is_before_steps(training: MeasuredTraining, row: ParameterRow, call: Call) -> bool:
    """Returns whether a leaf that no optimizer steps, as the points of a chain of samples, got its last gradient before
    more than a few steps of a parameter that the call multiplies by, and whether that one moves in the end."""
    facts, last = training.facts, training.training.last_fill(row.tensor)
    if row.is_stepped or last is None:
        return False
    storages = {facts.storage_of(each.tensor, call.index) for each in call.inputs} - {None}
    for factor in (each for each in training.rows if each.is_stepped and each.has_moved and each is not row):
        if facts.storage_of(factor.tensor, call.index) in storages:
            earlier = (step for step in training.training.steps if step.index < last.index)
            return sum(factor.tensor in step.parameters for step in earlier) < _FEW_STEPS
    return False


def _is_of_one(facts: TraceIndex, call: Call) -> bool:
    if "softmax" not in op_name(call) or not call.inputs or not call.outputs:
        return False
    is_single = 1 in facts.tensor(call.outputs[0].tensor).shape
    return is_single and is_of_setting(facts, call.inputs[0].tensor, call.index)
