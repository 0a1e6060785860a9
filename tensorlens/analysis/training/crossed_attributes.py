"""Finds attributes of modules that a call has overwritten for other data before the first data is used with them.

A layer that keeps `self.mean` of what it normalizes, to put it back later, has that of the latest input: an `encode()`
of something else in between replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.records.model import Call

_MIN_PASSES = 3
_MAX_CALLS = 400


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
    """Returns an input that another method has set an attribute to, the call that made it, and the attribute."""
    function = facts.trace.sites[call.site].function
    for access in call.inputs:
        made = facts.creator(access.tensor)
        site = None if made is None else facts.trace.sites[made.site]
        if made is None or site is None or site.function == function or made.within:
            continue
        name = next((each for each in site.targets if each.startswith("self.") and "[" not in each), None)
        is_method = site.function.rpartition(".")[0] == function.rpartition(".")[0] != ""
        if name is not None and is_method and not site.function.endswith(".__init__"):
            return access.tensor, made, name
    return None


def _crossed(facts: TraceIndex, call: Call, value: int, last: Call, name: str) -> CrossedAttribute | None:
    """Returns the attribute if the other input was computed with an earlier value of it, and not with this one."""
    other = next((access.tensor for access in call.inputs if access.tensor != value), None)
    if other is None:
        return None
    earlier: Call | None = None
    for _, above in ancestry(facts, other, call.index, _MAX_CALLS):
        for access in above.inputs:
            made = facts.creator(access.tensor)
            if access.tensor == value:
                return None
            if made is not None and made.site == last.site and made.index < last.index:
                earlier = made if earlier is None else max(earlier, made, key=lambda each: each.index)
    if earlier is None:
        return None
    number = earlier.outputs[0].tensor
    is_derived = any(number in {a.tensor for a in above.inputs} for _, above in ancestry(facts, value, call.index))
    return None if is_derived else CrossedAttribute(name, call, earlier, last)
