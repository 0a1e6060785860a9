"""Finds evaluations that put a result back to a scale with the statistics of the very data they compare it with.

A layer that normalizes keeps `self.mean` of its latest input. If this is the target, and not what the model got, the
result is given the mean of the target before it is compared with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_in_place.crossed_attributes import CrossedAttribute, crossed, settings
from tensorlens.analysis.training.changed_in_place.crossed_data import data_of
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS
from tensorlens.records.model import Call

_LEAST, _MOST = 2, 8  # uses of a line
_SCALING = frozenset("mul imul add iadd div truediv itruediv idiv true_divide divide addcmul".split())
_MAX_CALLS = 400
_AFTER = 2_000  # calls that may come before the comparison
_DIFFERENCES = ERRORS | {"sub", "rsub"}
_SAME = frozenset(
    "view reshape squeeze unsqueeze flatten detach clone to cpu float double contiguous cat stack".split()
)
_ELEMENTWISE = frozenset("add radd mul rmul sub div truediv iadd imul clamp clip expm1 exp".split())


def crossed_evaluations(facts: TraceIndex) -> Iterator[CrossedAttribute]:
    """Yields these attributes, one for each line that uses one without a graph, if this happens at each recorded use.

    Each row has statistics of its own, which are set anew for each use: those of all data may be meant for the results.
    """
    for calls in _uses(facts).values():
        found: list[CrossedAttribute] = []
        for call in calls:
            each = _crossed(facts, call)
            if each is None:
                break
            found.append(each)
        if len(found) == len(calls) and len({each.last.index for each in found}) == len(found) >= _LEAST:
            yield found[-1]


def _uses(facts: TraceIndex) -> dict[int, list[Call]]:
    """Returns the calls of lines that scale or move a value while gradients are off, at most _MOST of each."""
    found: dict[int, list[Call]] = {}
    for call in facts.calls:
        if call.mode != "grad" and not call.within and len(call.inputs) > 1 and op_name(call) in _SCALING:
            calls = found.setdefault(call.site, [])
            if len(calls) < _MOST:
                calls.append(call)
    return found


def _crossed(facts: TraceIndex, call: Call) -> CrossedAttribute | None:
    """Returns an attribute of a call that has statistics of the rows that the result is compared with."""
    for setting in settings(facts, call):
        each, is_mixed = crossed(facts, call, setting)
        if each is None or is_mixed or not _has_parameter(facts, each):
            continue
        data = {number for number, _ in data_of(facts, setting.made)}
        rows = facts.tensor(setting.value).shape[:1]
        is_of_rows = all(facts.tensor(number).shape[:1] == rows for number in data)
        if is_of_rows and rows and rows[0] > 1 and _is_compared(facts, call, data):
            return each
    return None


def _has_parameter(facts: TraceIndex, each: CrossedAttribute) -> bool:
    """Returns whether a model has computed the other value, from data whose statistics no parameter has made."""
    above = islice(ancestry(facts, each.other, each.used.index), _MAX_CALLS)
    before = [pair for access in each.first.inputs for pair in ancestry(facts, access.tensor, each.first.index)]
    return _has(facts, above) and not _has(facts, before)


def _has(facts: TraceIndex, calls: Iterable[tuple[int, Call]]) -> bool:
    return any(facts.tensor(access.tensor).type == "Parameter" for _, made in calls for access in made.inputs)


def _is_compared(facts: TraceIndex, call: Call, data: set[int]) -> bool:
    """Returns whether a later call subtracts one of the data from the result, element by element."""
    held, compared = {access.tensor for access in call.outputs}, set(data)
    scope = facts.scope(call.site)
    for later in islice(facts.calls_between(call.index + 1), _AFTER):
        inputs, name = [access.tensor for access in later.inputs], op_name(later)
        outputs = {access.tensor for access in later.outputs}
        if name in _DIFFERENCES and len(inputs) > 1 and _meet(facts, inputs, held, compared):
            return True
        is_moved = name in _ELEMENTWISE and facts.scope(later.site) == scope
        if held & set(inputs) and (name in _SAME or is_moved):
            held |= outputs
        elif compared & set(inputs) and name in _SAME:
            compared |= outputs
    return False


def _meet(facts: TraceIndex, inputs: list[int], held: set[int], compared: set[int]) -> bool:
    """Returns whether a call has the result and the data, of one shape."""
    one, other = inputs[:2]
    is_met = (one in held and other in compared) or (one in compared and other in held)
    return is_met and facts.tensor(one).shape == facts.tensor(other).shape
