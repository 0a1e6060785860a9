"""Finds weighted averages of trained copies of a module that it loads although their weights do not sum to 1.

The run measured inner products of the loaded values with the states. They show whether the values are a sum of the
states, and with which weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from statistics import fmean, stdev

from tensorlens.analysis.code_around import scope_around, statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.checkpoints_and_averages.linear_systems import solved
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.module_loads import LOADS, module_loads
from tensorlens.analysis.training.one_memory import origin
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call, Span
from tensorlens.records.training_values import LoadedProducts

_COPYING = frozenset("detach clone get to cpu float double deepcopy contiguous requires_grad Parameter data".split())
_ADDING = frozenset("add radd iadd sum stack mul rmul imul div truediv idiv itruediv lerp mean foreach_add".split())
_SHAPING = frozenset("getitem view reshape unsqueeze squeeze expand zeros_like".split())
_SUMS = _COPYING | _ADDING | _SHAPING | frozenset("tensordot einsum".split())
_MAX_CALLS, _MAX_COPIES, _MAX_NAMES = 400, 12, 40
_SCALING = frozenset("mul rmul div truediv".split())
_ZEROS = frozenset("zeros zeros_like new_zeros zero".split())
_CLOSE = 1e-4  # of the squared norm
_FAR = 0.05
_DEVIATIONS = 3


@dataclass(frozen=True, slots=True)
class ScaledAverage:
    """A load of an average, with the number of states and the sum of their weights."""

    load: Call
    added: Call  # the last sum
    divided: Span | None  # where its weights are, if the function around the sum shows it
    states: int
    weight: float


def scaled_averages(training: MeasuredTraining) -> Iterator[ScaledAverage]:
    """Yields the first such load of each line.

    Steps have trained each state, which began as a copy of the module. The weights are all positive: with negative
    ones, the sum can be a difference of states on purpose.
    """
    facts, lines = training.facts, dict[int, list[tuple[LoadedProducts, Call]]]()
    for measured in facts.trace.inspection.loaded_products:
        load = next((each for each in module_loads(facts) if _is_load(each, measured)), None)
        if load is not None:
            lines.setdefault(load.site, []).append((measured, load))
    for looks in lines.values():
        sums = [each for measured, load in looks if (each := _sum_at(training, measured, load)) is not None]
        found = next((each for each in sums if abs(each.weight - 1) >= _FAR), None)
        if found is not None and not _may_mean_one([each.weight for each in sums]):
            if not _adds_to_frozen(training, found.load):
                yield found


def _sum_at(training: MeasuredTraining, measured: LoadedProducts, load: Call) -> ScaledAverage | None:
    """Returns the sum of trained copies that a load takes, whatever its weights sum to."""
    facts = training.facts
    sources, added = _sources(facts, load, measured)
    weights = _weights(measured, sources) if len(sources) > 1 else None
    span = None if added is None else facts.span(added.site)
    if weights is None or added is None or span is None or min(weights) <= 0:
        return None
    if not all(_is_trained_copy(training, number, load) for number in sources) or _is_scaled_later(facts, load):
        return None
    return ScaledAverage(load, added, _division(facts, span), len(sources), sum(weights))


def _may_mean_one(sums: list[float]) -> bool:
    """Returns whether sums that differ from load to load can have a mean of 1, as an unbiased estimate from a random
    part of the copies has."""
    return len(sums) > 1 and abs(fmean(sums) - 1) < _DEVIATIONS * stdev(sums)


def _adds_to_frozen(training: MeasuredTraining, load: Call) -> bool:
    """Returns whether a matrix of the module that loads began with zeros, beside parameters that nothing steps or
    loads: it adds to what these compute, as a low-rank adapter does, and adapters of several tasks can add up."""
    facts, loads = training.facts, list(module_loads(training.facts))
    loaded = {call.inputs[0].tensor for call in loads}
    if all(row.is_stepped or row.tensor in loaded for row in training.rows):
        return False
    near = (call for call in loads if call.site == load.site and abs(call.index - load.index) <= _MAX_NAMES)
    own = {call.inputs[0].tensor for call in near}
    return any(len(facts.tensor(number).shape) > 1 and _begins_as_zeros(facts, number, load) for number in own)


def _begins_as_zeros(facts: TraceIndex, number: int, load: Call) -> bool:
    """Returns whether the last line that filled a parameter before a load filled it with zeros."""
    writes = (event for event, _ in facts.writes(facts.tensor(number).counter) if event.index < load.index)
    fills = [each for each in writes if isinstance(each, Call) and facts.trace.sites[each.site].through != LOADS]
    made = fills[-1] if fills else facts.creator(origin(facts, number))
    return made is not None and op_name(made) in _ZEROS


def _is_load(call: Call, measured: LoadedProducts) -> bool:
    is_later = call.index >= measured.index and call.site == measured.site
    return is_later and (call.inputs[0].tensor, call.inputs[-1].tensor) == (measured.target, measured.tensors[0])


def _sources(facts: TraceIndex, load: Call, measured: LoadedProducts) -> tuple[list[int], Call | None]:
    """Returns the measured tensors that a loaded value is computed from by sums and products, and the last sum."""
    storages = {facts.storage_of(number, load.index): number for number in measured.tensors[1:]}
    waiting, found, added = [(load.inputs[-1].tensor, load.index)], list[int](), None
    seen = set[int]()
    for number, before in waiting:
        storage = facts.storage_of(number, load.index)
        if storage in storages and not found.count(storages[storage]):
            found.append(storages[storage])
        if storage in storages:
            continue
        call = next(iter(facts.producers(number, before)), None)
        is_factor = prod(facts.tensor(number).shape) < prod(facts.tensor(measured.target).shape)
        if call is None or call.index in seen or not call.inputs or is_factor:
            continue
        if op_name(call) not in _SUMS or len(seen) > _MAX_CALLS:
            return [], None
        seen.add(call.index)
        added = call if added is None and len(call.inputs) > 1 else added
        waiting += [(access.tensor, call.index) for access in call.inputs]
    return found, added


def _weights(measured: LoadedProducts, sources: list[int]) -> list[float] | None:
    """Returns the factors by which a loaded value is a sum of others; None if it is not, or several can be."""
    count, rows = len(measured.tensors), list[list[float]]()
    if len(measured.products) != count * (count + 1) // 2:
        return None
    products = iter(measured.products)
    for place in range(count):
        rows.append([rows[earlier][place] for earlier in range(place)] + [next(products) for _ in range(place, count)])
    places = [measured.tensors.index(number) for number in sources]
    matrix = [[rows[one][other] for other in places] for one in places]
    own, target = rows[0][0], [rows[0][place] for place in places]
    weights = solved(matrix, target)
    if weights is None:
        return None
    rest = own - sum(weight * value for weight, value in zip(weights, target, strict=True))
    return weights if own > 0 and abs(rest) <= _CLOSE * own else None


def _is_scaled_later(facts: TraceIndex, load: Call) -> bool:
    """Returns whether a line of the program changes what was loaded, or multiplies it by a number, before another load
    or a step does."""
    number = load.inputs[0].tensor
    for call in facts.calls_between(load.index + 1):
        is_own = not call.within and not facts.trace.sites[call.site].through
        if call.op == DATA_SET and call.inputs[0].tensor == number:
            return is_own
        if any(facts.tensor(write.tensor).counter == facts.tensor(number).counter for write in call.writes):
            return is_own
        if is_own and op_name(call) in _SCALING and len(call.inputs) == 1 and call.nodes[0] == call.nodes[1]:
            if facts.storage_of(call.inputs[0].tensor, call.index) == facts.storage_of(number, call.index):
                return True
    return False


def _division(facts: TraceIndex, span: Span) -> Span | None:
    """Returns the division that the factors of a sum come from, by the names that the function around it assigns."""
    scope, node = scope_around(facts, span.file, span.line), statement_around(facts, span)
    waiting: list[ast.AST] = [] if node is None else [node]
    for each in waiting:
        found = next(
            (part for part in ast.walk(each) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div)), None
        )
        if found is not None:
            return facts.span_of(found, span.file)
        if len(waiting) > _MAX_NAMES:
            break
        names = {part.id for part in ast.walk(each) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
        waiting += [value for name in sorted(names) for value in _given(scope, name) if value not in waiting]
    return None


def _given(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yields what a function assigns to a name, or loops over with it."""
    for node in ast.walk(scope):
        pairs = [(target, node.value) for target in node.targets] if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.For | ast.comprehension):
            pairs = [(node.target, node.iter)]
        for target, value in pairs:
            if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target)):
                yield value


def _is_trained_copy(training: MeasuredTraining, number: int, load: Call) -> bool:
    """Returns whether a tensor is, or is a copy of, a parameter that steps have trained from the values of the module
    that loads."""
    facts, before = training.facts, load.index
    target = load.inputs[0].tensor
    trained = {storage for row in training.rows if row.is_stepped for storage in facts.storages_of(row.tensor)}
    is_trained = False
    home = facts.storages_of(target)
    for _ in range(_MAX_COPIES):
        storages = facts.storages_of(number)
        if not home.isdisjoint(storages):
            return is_trained
        is_trained |= not trained.isdisjoint(storages)
        copy = _copied(facts, number, before)
        if copy is None:
            return False
        number, before = copy
    return False


def _copied(facts: TraceIndex, number: int, before: int) -> tuple[int, int] | None:
    """Returns the tensor that a tensor was copied from last, with the event of the copy."""
    for call in facts.producers(number, before):
        if op_name(call) == "copy" and len(call.inputs) > 1 and call.inputs[0].tensor == number:
            return call.inputs[-1].tensor, call.index
    made = facts.creator(number)
    if made is None or op_name(made) not in _COPYING or not made.inputs:
        return None
    return made.inputs[0].tensor, made.index
