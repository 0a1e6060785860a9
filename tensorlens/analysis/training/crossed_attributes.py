"""Finds attributes of modules that a call has overwritten for other data before the first data is used with them.

A layer that keeps `self.mean` of what it normalizes, to put it back later, has that of the latest input: an `encode()`
of something else in between replaces it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.records.model import Call

_MIN_PASSES = 3
_MAX_CALLS = 400
_INVERSE = {"mul": ("div", "truediv"), "imul": ("div", "truediv"), "add": ("sub",), "iadd": ("sub",)}
_REDUCTIONS = frozenset("mean sum var std var_mean std_mean amax amin norm median quantile".split())


@dataclass(frozen=True, slots=True)
class CrossedAttribute:
    """A value that an attribute has for other data than what it is used with."""

    name: str  # "self.mean"
    used: Call  # has the attribute and a value that was computed with an earlier one
    first: Call  # set the attribute to the earlier value
    last: Call  # set it to the value that is used: a call of the same line


def crossed_attributes(facts: TraceIndex) -> Iterator[CrossedAttribute]:
    """Yields these attributes, one for each line that uses one, if this happens in several passes and never else."""
    found: dict[int, list[CrossedAttribute | None]] = {}
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if len(call.inputs) == 2 and (setting := _setting(facts, call)) is not None:
                found.setdefault(call.site, []).append(_crossed(facts, call, *setting))
    for each in found.values():
        crossed = [one for one in each if one is not None]
        if len(crossed) == len(each) >= _MIN_PASSES:
            yield crossed[-1]


def _setting(facts: TraceIndex, call: Call) -> tuple[int, Call, str] | None:
    """Returns an input that another method has set an attribute to, the call that made it, and the attribute.

    The program makes one object of the class, and the attribute is a statistic of data alone.
    """
    function = facts.trace.sites[call.site].function
    for access in call.inputs:
        made = facts.creator(access.tensor)
        site = None if made is None else facts.trace.sites[made.site]
        if made is None or site is None or site.function == function or made.within:
            continue
        owner = site.function.rpartition(".")[0]
        is_method = owner == function.rpartition(".")[0] != "" and not site.function.endswith(".__init__")
        names = site.targets if len(site.targets) == len(made.outputs) == 1 else ()
        name = next((each for each in names if each.startswith("self.") and "[" not in each), None)
        if name and is_method and _is_statistic(facts, access.tensor, call.index) and _has_one_object(facts, owner):
            return access.tensor, made, name
    return None


def _is_statistic(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a value is a mean or a deviation of what no parameter has made."""
    above = [made for _, made in islice(ancestry(facts, number, before), _MAX_CALLS)]
    has_parameter = any(facts.tensor(access.tensor).type == "Parameter" for made in above for access in made.inputs)
    return any(op_name(made) in _REDUCTIONS for made in above) and not has_parameter


def _has_one_object(facts: TraceIndex, owner: str) -> bool:
    """Returns whether one place of the program names a class to call it."""
    name = owner.rpartition(".")[2]
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return sum(isinstance(node, ast.Name) and node.id == name for node in nodes) == 1


def _crossed(facts: TraceIndex, call: Call, value: int, last: Call, name: str) -> CrossedAttribute | None:
    """Returns the attribute if the other input was computed with an earlier value of it by the inverse operation, and
    not with this one."""
    other = next((access.tensor for access in call.inputs if access.tensor != value), None)
    if other is None or op_name(call) not in _INVERSE:
        return None
    earlier: Call | None = None
    for _, above in ancestry(facts, other, call.index, _MAX_CALLS):
        for access in above.inputs:
            made = facts.creator(access.tensor)
            if access.tensor == value:
                return None
            if made is not None and made.site == last.site and made.index < last.index:
                if op_name(above) in _INVERSE[op_name(call)]:
                    earlier = made if earlier is None else max(earlier, made, key=lambda each: each.index)
    if earlier is None:
        return None
    number = earlier.outputs[0].tensor
    is_derived = any(number in {a.tensor for a in above.inputs} for _, above in ancestry(facts, value, call.index))
    return None if is_derived else CrossedAttribute(name, call, earlier, last)
