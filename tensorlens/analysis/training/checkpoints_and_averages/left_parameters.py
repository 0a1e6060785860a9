"""Finds parameters whose averages an optimizer loads, while they begin as they were made: the others are loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.one_memory import origin
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.analysis.training.written_values import fills_computed
from tensorlens.records.model import Call
from tensorlens.records.training_values import LoadedAverages

_FILLS = frozenset("normal uniform zero fill trunc_normal exponential".split())
_DRAWS = frozenset("randn rand zeros ones full randn_like rand_like zeros_like ones_like randint normal eye".split())
_EMPTY = frozenset(("empty", "empty_like", "Parameter", "mul", "div", "truediv", "rmul", "sub", "add"))
_WHOLE = "Module."  # methods that move or cast a module


@dataclass(frozen=True, slots=True)
class LeftParameters:
    """Parameters that begin anew although an optimizer loads averages of them, and a write that loads another one."""

    averages: LoadedAverages
    left: tuple[ParameterRow, ...]
    loaded: int
    load: Call


def left_parameters(training: MeasuredTraining) -> Iterator[LeftParameters]:
    facts = training.facts
    found = facts.trace.inspection.loaded_averages
    if not found or training.training.is_hidden or not is_complete(facts.trace):
        return
    for averages in found:
        first: dict[int, int] = {}
        for step in training.training.steps:
            for number, gradient in zip(step.parameters, step.gradients, strict=True):
                if gradient is not None:
                    first.setdefault(number, step.index)
        new = [number for number in averages.parameters if first.get(number, -1) > averages.index]
        writes = {number: list(writes_before(facts, number, first[number])) for number in new}
        loads = [next((call for call in writes[number] if _is_load(facts, call)), None) for number in new]
        left = [row for number in new if is_as_made(facts, number, writes[number]) and (row := training.row(number))]
        known = [load for load in loads if load is not None]
        if left and known and len(left) + len(known) == len(averages.parameters):
            yield LeftParameters(averages, tuple(left), len(known), min(known, key=attrgetter("index")))


def writes_before(facts: TraceIndex, number: int, before: int) -> Iterator[Call]:
    """Yields the calls before an event that give a parameter other values or other memory."""
    storages = facts.storages_of(number)
    for call in facts.calls_between(0, before):
        is_set = call.op == DATA_SET and bool(call.inputs) and call.inputs[0].tensor == number
        if is_set or any(facts.storage_of(write.tensor, call.index) in storages for write in call.writes):
            yield call


def _is_load(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call copies values into a parameter that nothing has drawn."""
    is_moved = facts.trace.sites[call.site].through.startswith(f"{_WHOLE}to")
    return not is_moved and (call.op == DATA_SET or op_name(call) == "copy")


def is_as_made(facts: TraceIndex, number: int, writes: list[Call]) -> bool:
    """Returns whether a parameter has values that lines have drawn, or a constant, and nothing else."""
    for call in writes:
        through = facts.trace.sites[call.site].through
        is_init = call.op.startswith("nn.init.") or op_name(call) in _FILLS
        is_moved = call.op == DATA_SET and through.startswith(_WHOLE)
        if not (is_init or is_moved) or fills_computed(facts, call):
            return False
    start = origin(facts, number)
    made = facts.creator(start)
    drawn = made is not None and op_name(made) in _DRAWS and not fills_computed(facts, made)
    is_filled = any(call.op.startswith("nn.init.") or op_name(call) in _FILLS for call in writes)
    return drawn or (is_filled and (made is None or op_name(made) in _EMPTY))
