"""Finds parameters in the memory of a tensor that no optimizer holds, and that later losses are computed from."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.plain_values import takes_shape_only
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.one_memory import elements, is_one
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call
from tensorlens.records.observations import Step

_LOOK_UPS = frozenset(("embedding", "embedding_bag", "index_select", "gather", "take_along_dim"))
_PRODUCTS = frozenset(("linear", "matmul", "rmatmul", "mm"))
_REPLACING = frozenset("where masked_scatter index_put index_copy scatter setitem copy".split())
_MAX_VIEWS = 10
_MAX_STEPS = 20
_MAX_PASSES = 3


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A parameter that was made in the memory of another tensor, which a pass still reads after a step."""

    made: Call
    parameter: int
    source: int
    step: Step
    read: Call


def read_sources(training: MeasuredTraining) -> Iterator[ReadSource]:
    """Yields these parameters, each once.

    A source that nothing reads after the first step, or of which only other parts are read, is left out. So is a flat
    vector whose parts are parameters together, and a table that a trained part or a tied layer keeps up to date.
    """
    facts, seen = training.facts, set[int]()
    stepped = {row.tensor for row in training.rows if row.is_stepped and row.passes}
    for call in facts.calls:
        given = _given(call)
        if given not in stepped or given in seen or call.within:
            continue
        source = _source(facts, call, given)
        step = None if source is None else _first_step(facts, call, given, source)
        if source is None or step is None or _is_meant(facts, given, source, stepped, step):
            continue
        read = _read_after(facts, given, source, step)
        if read is not None:
            seen.add(given)
            yield ReadSource(call, given, source, step, read)


def _given(call: Call) -> int | None:
    """Returns the parameter that a call makes from a tensor, or gives the memory of another one."""
    if call.op == DATA_SET and len(call.inputs) == 2:
        return call.inputs[0].tensor
    return call.outputs[0].tensor if call.op == "nn.Parameter" and call.inputs and call.outputs else None


def _source(facts: TraceIndex, call: Call, given: int) -> int | None:
    """Returns the parameter whose memory a call passes on, or another tensor of which it makes a part a parameter.

    A script that assigns a part of a plain tensor to `.data`, as one of many solutions, may mean to change it there.
    """
    memory, number, at = facts.storage_of(given, call.index), call.inputs[-1].tensor, call.index
    for _ in range(_MAX_VIEWS if memory is not None else 0):
        if facts.storage_of(number, at) != memory:
            return None
        if facts.tensor(number).type.endswith("Parameter") and number != given:
            return number
        made = facts.creator(number)
        inputs = made.inputs if made is not None and made.index < at else ()
        if made is None or not inputs or facts.storage_of(inputs[0].tensor, made.index) != memory:
            is_part = elements(facts.tensor(number).shape) > elements(facts.tensor(given).shape)
            return number if is_part and call.op != DATA_SET else None
        number, at = inputs[0].tensor, made.index
    return None


def _first_step(facts: TraceIndex, call: Call, given: int, source: int) -> Step | None:
    """Returns the first step that changes a parameter in the memory of its source, which is not stepped itself."""
    steps = facts.trace.inspection.steps
    first = bisect_right(steps, call.index, key=attrgetter("index"))
    for step in steps[first : first + _MAX_STEPS]:
        gradients = dict(zip(step.parameters, step.gradients, strict=True))
        if gradients.get(given) is not None:
            is_shared = facts.storage_of(given, step.index) == facts.storage_of(source, step.index)
            return step if is_shared and source not in gradients else None
    return None


def _is_meant(facts: TraceIndex, given: int, source: int, stepped: set[int], step: Step) -> bool:
    """Returns whether the two are used as one: parts that are trained together, or a table and a layer."""
    used: dict[int, set[str]] = defaultdict(set)
    whole = {given: given, source: source}  # parts of the parameter, too
    for call in facts.calls:
        for number in {whole[access.tensor] for access in call.inputs if access.tensor in whole}:
            used[number].add(_use(call))
            if number == given and _use(call) == "getitem":
                whole |= dict.fromkeys((access.tensor for access in call.outputs), given)
    looked_up, weights = _LOOK_UPS & used[given], _PRODUCTS & used[given]
    if elements(facts.tensor(given).shape) == elements(facts.tensor(source).shape):
        is_tied = bool(looked_up and _PRODUCTS & used[source]) or bool(weights and _LOOK_UPS & used[source])
        return is_tied or not is_one(facts, given, source, step.index)
    memory = facts.storage_of(source, step.index)
    parts = [number for number in stepped - {source} if facts.storage_of(number, step.index) == memory]
    is_replacing = bool(_REPLACING & used[given])  # it replaces a part, as where ids are those of a new word
    is_whole = sum(elements(facts.tensor(number).shape) for number in parts) >= elements(facts.tensor(source).shape)
    return is_whole or is_replacing or bool(weights) or bool(looked_up and _LOOK_UPS & used[source])


def _use(call: Call) -> str:
    name = op_name(call)
    return "index_select" if name == "getitem" and len(call.inputs) > 1 else name


def _read_after(facts: TraceIndex, given: int, source: int, step: Step) -> Call | None:
    """Returns the call after a step by which a pass that gives the parameter a gradient reads the source."""
    passes = 0
    for backward in facts.backwards:
        if (
            backward.index < step.index
            or backward.failed
            or all(change.tensor != given for change in backward.gradients)
        ):
            continue
        for root in backward.roots:
            for _, call in ancestry(facts, root.tensor, backward.index, since=step.index):
                is_input = not call.within and any(access.tensor == source for access in call.inputs)
                is_shared = facts.storage_of(source, call.index) == facts.storage_of(given, call.index)
                if is_input and is_shared and _reads_values(facts, call, source):
                    return call
        passes += 1
        if passes == _MAX_PASSES:
            break
    return None


def _reads_values(facts: TraceIndex, call: Call, source: int) -> bool:
    """Returns whether a call computes values from a tensor: no view of it, no mask, and none with its shape only."""
    outputs = [facts.tensor(access.tensor) for access in call.outputs]
    memory = facts.storage_of(source, call.index)
    is_view = any(facts.storage_of(each.id, call.index) == memory for each in outputs)
    return bool(outputs) and not is_view and not takes_shape_only(call) and outputs[0].dtype != "bool"
