"""Finds tensors that a module keeps as plain attributes, and that `load_state_dict()` does not give to another one.

A module saves its parameters and buffers. Statistics that `forward` assigns to `self.mean` are neither, if the
constructor has made `self.mean` without `register_buffer()`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.module_loads import module_loads
from tensorlens.records.model import Call

_CONSTRUCTOR = "__init__"
_OWN_STATES = frozenset(("get_extra_state", "set_extra_state", "_save_to_state_dict", "state_dict"))
_AVERAGING = frozenset("add radd iadd sub rsub isub mul rmul imul lerp maximum minimum".split())
_REDUCTIONS = frozenset("mean sum var std var_mean std_mean amax amin max min norm quantile".split())
_MIN_CHANGES = 3
_MAX_CALLS = 60


@dataclass(frozen=True, slots=True)
class UnsavedAttribute:
    """An attribute that a loaded module uses as its constructor has made it."""

    name: str  # "self.mean"
    made: Call  # in the constructor of the loaded module
    changed: Call  # the last call in another method of the class that set the attribute
    load: Call
    used: Call  # after the load


def unsaved_attributes(facts: TraceIndex) -> Iterator[UnsavedAttribute]:
    """Yields these attributes, if the line that uses them has used changed values before, and nothing changes them
    after the load."""
    loads = list(module_loads(facts))
    if not loads or _saves_itself(facts):
        return
    made, changed = defaultdict[tuple[str, str], list[Call]](list), defaultdict[tuple[str, str], list[Call]](list)
    for call in facts.calls:
        for key in _attributes(facts, call):
            is_constructor = facts.trace.sites[call.site].function.endswith("." + _CONSTRUCTOR)
            (made if is_constructor else changed)[key].append(call)
    for key, constructed in made.items():
        last, changes = constructed[-1], changed[key]
        load = next((each for each in loads if each.index > last.index), None)
        if load is None or len(constructed) < 2 or len(changes) < _MIN_CHANGES or changes[-1].index > last.index:
            continue
        if last.inputs or not _is_statistic(facts, changes) or not _is_of_one_object(facts, last, load):
            continue
        used = _use(facts, last, load, changes)
        if used is not None:
            yield UnsavedAttribute(key[1], last, changes[-1], load, used)


def _is_statistic(facts: TraceIndex, changes: list[Call]) -> bool:
    """Returns whether the last change makes a value of the one before and of a reduction of data, as an average does.

    The states of a recurrent layer, masks and caches of other sizes are none.
    """
    last, before = changes[-1], {access.tensor for access in changes[-2].outputs}
    above = islice(ancestry(facts, last.outputs[0].tensor, last.index + 1), _MAX_CALLS)
    since = [made for _, made in above if made.index > changes[-2].index]
    keeps = any(op_name(made) in _AVERAGING for made in since if before & {access.tensor for access in made.inputs})
    return keeps and any(op_name(made) in _REDUCTIONS for made in since)


def _is_of_one_object(facts: TraceIndex, made: Call, load: Call) -> bool:
    """Returns whether one line makes the object that has an attribute and a tensor that a load writes to, and no pass
    runs between the two."""
    loaded = facts.creator(load.inputs[0].tensor)
    if loaded is None or not facts.same_line(_made_at(facts, made), _made_at(facts, loaded)):
        return False
    first, last = sorted((made.index, loaded.index))
    return not any(first < backward.index < last for backward in facts.backwards)


def _made_at(facts: TraceIndex, call: Call) -> int:
    """Returns the line that makes the object whose constructor makes a call."""
    chain = facts.call_chain(call.site)
    sites = facts.trace.sites
    return next((site for site in chain if not sites[site].function.endswith("." + _CONSTRUCTOR)), call.site)


def _saves_itself(facts: TraceIndex) -> bool:
    """Returns whether a class of the program decides itself what is saved."""
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return any(isinstance(node, ast.FunctionDef) and node.name in _OWN_STATES for node in nodes)


def _attributes(facts: TraceIndex, call: Call) -> Iterator[tuple[str, str]]:
    """Yields the attributes of `self` that a call's result is stored to, each with the class whose method does so."""
    site = facts.trace.sites[call.site]
    owner, _, method = site.function.rpartition(".")
    is_plain = len(call.outputs) == 1 and facts.tensor(call.outputs[0].tensor).type == "Tensor"
    if owner and method and is_plain and not call.within:
        yield from ((owner, target) for target in site.targets if target.startswith("self.") and "[" not in target)


def _use(facts: TraceIndex, made: Call, load: Call, changes: list[Call]) -> Call | None:
    """Returns the first call after a load that uses what the constructor has made, at a line that used changed values
    before."""
    number, own = made.outputs[0].tensor, {access.tensor for call in changes for access in call.outputs}
    before = {call.site for call in facts.calls if own & {access.tensor for access in call.inputs}}
    for call in facts.calls_between(load.index):
        if any(write.tensor == number for write in call.writes):
            return None
        if any(access.tensor == number for access in call.inputs):
            return call if call.site in before else None
    return None
