"""Finds attributes of modules that a call has overwritten for other data before the first data is used with them.

A layer that keeps `self.mean` of what it normalizes, to put it back later, has that of the latest input: an `encode()`
of something else in between replaces it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_in_place.apart_lines import are_apart
from tensorlens.analysis.training.changed_in_place.crossed_data import have_same_data, is_of_first
from tensorlens.analysis.training.changed_in_place.kept_values import attribute_of, kept_in
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.records.model import Backward, Call

_MIN_PASSES = 3
_MAX_CALLS = 400
_DIVISIONS, _PRODUCTS = frozenset(("div", "truediv", "itruediv", "idiv", "true_divide", "divide")), ("mul", "imul")
_DIFFERENCES, _SUMS = frozenset(("sub", "isub")), ("add", "iadd")
_INVERSE = {
    **dict.fromkeys(_PRODUCTS, _DIVISIONS),
    **dict.fromkeys(_SUMS, _DIFFERENCES),
    **dict.fromkeys(_DIVISIONS, frozenset(_PRODUCTS)),
}
_REDUCTIONS = frozenset("mean sum var std var_mean std_mean amax amin max min norm vector_norm median quantile".split())


@dataclass(frozen=True, slots=True)
class CrossedAttribute:
    """A value that an attribute has for other data than what it is used with."""

    name: str  # "self.mean"
    used: Call  # has the attribute and a value that was computed with an earlier one
    other: int  # this value
    first: Call  # set the attribute to the earlier value
    last: Call  # set it to the value that is used: a call of the same line


@dataclass(frozen=True, slots=True)
class Setting:
    """An input of a call that a method has set an attribute to."""

    value: int
    made: Call
    name: str


def crossed_attributes(facts: TraceIndex) -> Iterator[CrossedAttribute]:
    """Yields these attributes, one for each line that uses one, if this happens in several passes and never else.

    Each pass sets it anew: a scaler that is fitted to the data, and then to the targets, has that of the targets for
    all of them.
    """
    found: dict[int, list[CrossedAttribute | None]] = {}
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            for setting in settings(facts, call):
                found.setdefault(call.site, []).append(_crossed_in(facts, call, setting, backward))
                break
    for each in found.values():
        uses = [one for one in each if one is not None]
        if len(uses) == len(each) >= _MIN_PASSES and len({one.last.index for one in uses}) == len(uses):
            yield uses[-1]


def settings(facts: TraceIndex, call: Call) -> Iterator[Setting]:
    """Yields the inputs that an earlier call of a function has set an attribute to, which this function reads.

    The program makes one object of the class, and the attribute is a statistic of data alone.
    """
    if op_name(call) not in _INVERSE and op_name(call) != "addcmul":
        return
    function = facts.trace.sites[call.site].function
    for access in call.inputs if len(call.inputs) > 1 else ():
        made = facts.creator(access.tensor)
        site = None if made is None else facts.trace.sites[made.site]
        if made is None or site is None or made.within:
            continue
        if site.function == function and not are_apart(facts, made.site, call.site):
            continue
        kept = kept_in(facts, made, access.tensor) if _is_statistic(facts, access.tensor, call.index) else None
        if kept is None or site.function.endswith(".__init__") or not _reads(facts, call, attribute_of(kept[1])):
            continue
        if _has_one_object(facts, kept[0]):
            yield Setting(access.tensor, made, kept[1])


def _reads(facts: TraceIndex, call: Call, attribute: str) -> bool:
    """Returns whether the function of a call reads an attribute."""
    span = facts.span(call.site)
    nodes = () if span is None else ast.walk(scope_around(facts, span.file, span.line))
    return any(isinstance(each, ast.Attribute) and each.attr == attribute for each in nodes)


def _is_statistic(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a value is a mean or a deviation of what no parameter has made."""
    is_reduced = False
    for _, made in islice(ancestry(facts, number, before), _MAX_CALLS):
        if any(facts.tensor(access.tensor).type == "Parameter" for access in made.inputs):
            return False
        is_reduced = is_reduced or op_name(made) in _REDUCTIONS
    return is_reduced


def _has_one_object(facts: TraceIndex, owner: str) -> bool:
    """Returns whether one place of the program names a class to call it."""
    name = owner.rpartition(".")[2]
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return sum(isinstance(node, ast.Name) and node.id == name for node in nodes) == 1


def _crossed_in(facts: TraceIndex, call: Call, setting: Setting, backward: Backward) -> CrossedAttribute | None:
    """Returns the attribute if the other input was computed with an earlier value of it, and not with this one, too,
    or the loss compares the result with the data of the earlier value."""
    each, is_mixed = crossed(facts, call, setting)
    if each is None or (is_mixed and not is_of_first(facts, (each.first, each.last), call, backward)):
        return None
    return each


def crossed(facts: TraceIndex, call: Call, setting: Setting) -> tuple[CrossedAttribute | None, bool]:
    """Returns the attribute if the other input was computed with an earlier value of it by the inverse operation.

    The second is whether it was computed with this value, too.
    """
    value, last = setting.value, setting.made
    other, inverse = _combined(facts, call, value)
    earlier: tuple[Call, int] | None = None
    is_mixed = False
    for _, above in () if other is None else ancestry(facts, other, call.index, _MAX_CALLS):
        for access in above.inputs:
            is_mixed |= access.tensor == value
            made = facts.creator(access.tensor)
            if made is not None and made.site == last.site and made.index < last.index:
                if op_name(above) in inverse and _place(made, access.tensor) == _place(last, value):
                    if earlier is None or made.index > earlier[0].index:
                        earlier = made, access.tensor
    if earlier is None or other is None or _is_derived(facts, value, call.index, earlier[1]):
        return None, is_mixed
    if have_same_data(facts, earlier[0], last):
        return None, is_mixed
    return CrossedAttribute(setting.name, call, other, earlier[0], last), is_mixed


def _place(made: Call, number: int) -> int:
    """Returns which of the results of a call a tensor is."""
    return [access.tensor for access in made.outputs].index(number)


def _is_derived(facts: TraceIndex, value: int, before: int, earlier: int) -> bool:
    """Returns whether a value is computed from an earlier one, as an average is."""
    return any(earlier in {each.tensor for each in above.inputs} for _, above in ancestry(facts, value, before))


def _combined(facts: TraceIndex, call: Call, value: int) -> tuple[int | None, frozenset[str]]:
    """Returns the input that a call multiplies by a value, or adds it to, and the names of the inverse operations."""
    inputs, name = [access.tensor for access in call.inputs], op_name(call)
    if name == "addcmul" and len(inputs) == 3:
        factors = [each for each in inputs[1:] if each != value and facts.requires_grad(each, call.index - 1)]
        return (factors[0], _DIVISIONS if inputs[0] != value else _DIFFERENCES) if factors else (None, frozenset())
    if len(inputs) != 2 or (name in _DIVISIONS and inputs[1] != value):
        return None, frozenset()
    return next((each for each in inputs if each != value), None), _INVERSE.get(name, frozenset())
