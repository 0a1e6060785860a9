"""Finds lines that set parts of gradients to zero, while the weight decay of steps moves these parts all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_gradients import gradient_changes
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.repeated_seeds import DRAWS
from tensorlens.analysis.training.value_ranges import is_zero_or_one
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_PRODUCTS = frozenset(("mul", "imul"))
_MASKING = _PRODUCTS | {"masked_fill", "where", "copy"}
_MAX_CALLS = 20
_FEWEST = 3  # runs of the line
_MOST_WRITTEN = 0.3  # of the steps: more may put the parts back


@dataclass(frozen=True, slots=True)
class MaskedGradient:
    """A line that sets parts of gradients to zero, and the parameters of one rate of decay."""

    change: Call
    rows: tuple[ParameterRow, ...]
    decay: float


def masked_gradients(training: MeasuredTraining) -> Iterator[MaskedGradient]:
    """Yields these lines. Parameters of which a mask sets parts to zero, too, have nothing to decay there."""
    facts = training.facts
    for change in gradient_changes(training):
        runs = sum(call.site == change.call.site for call in facts.calls)
        if change.is_late or change.is_unused or runs < _FEWEST or not _sets_zeros(facts, change.call):
            continue
        if _varies(training, change.call):
            continue
        rows = [
            row for row in training.rows if row.tensor in change.leaves and row.is_stepped and _decays(training, row)
        ]
        decays = {row.group.weight_decay for row in rows if row.group is not None}
        for decay in sorted(decays):
            chosen = [row for row in rows if row.group is not None and row.group.weight_decay == decay]
            yield MaskedGradient(change.call, tuple(chosen), decay)


def _sets_zeros(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call sets the elements to zero that a mask chooses."""
    others = [access.tensor for access in call.inputs[1:] if facts.tensor(access.tensor).shape]  # no number for all
    is_masked = any(facts.tensor(number).dtype == "bool" for number in others)
    if op_name(call) in _PRODUCTS:
        return len(others) == 1 and (is_masked or is_zero_or_one(facts, others[0], call.index))
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    if op_name(call) == "setitem":
        return is_masked and isinstance(statement, ast.Assign) and written_number(facts, statement.value) == 0
    node = None if span is None else facts.names.syntax.node(span)
    if op_name(call) != "masked_fill" or not isinstance(node, ast.Call):
        return False
    return is_masked and any(written_number(facts, each) == 0 for each in node.args)


def _varies(training: MeasuredTraining, call: Call) -> bool:
    """Returns whether a mask is computed from the gradient itself, as one of numbers that are small or not finite, or
    drawn after the first step, as for dropout of gradients."""
    facts, steps = training.facts, training.training.steps
    own = facts.storages_of(call.inputs[0].tensor)
    last = [each for each in facts.calls if each.site == call.site][-1]
    for run in (call, last):
        for access in run.inputs[1:]:
            for _, made in ancestry(facts, access.tensor, run.index, _MAX_CALLS):
                if any(facts.storages_of(each.tensor) & own for each in made.inputs):
                    return True
                if op_name(made) in DRAWS and steps and made.index > steps[0].index:
                    return True
    return False


def _decays(training: MeasuredTraining, row: ParameterRow) -> bool:
    """Returns whether steps decay a parameter, and no line sets parts of it to zero or puts them back."""
    writes = training.writes(row.tensor)
    is_masked = any(op_name(call) in _MASKING for call in writes)
    group = row.group
    return group is not None and group.weight_decay > 0 and not is_masked and len(writes) < _MOST_WRITTEN * group.steps
