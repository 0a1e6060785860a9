"""Finds tensors that a module keeps as plain attributes, and that `load_state_dict()` does not give to another one.

A module saves its parameters and buffers. Statistics that `forward` assigns to `self.mean` are neither, if the
constructor has made `self.mean` without `register_buffer()`. A permutation that the constructor draws is another one in
each object.
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
from tensorlens.analysis.training.repeated_seeds import DRAWS
from tensorlens.records.model import Call

_CONSTRUCTOR = "__init__"
_OWN_STATES = frozenset(("get_extra_state", "set_extra_state", "_save_to_state_dict", "state_dict"))
_AVERAGING = frozenset("add radd iadd sub rsub isub mul rmul imul lerp maximum minimum".split())
REDUCTIONS = frozenset("mean sum var std var_mean std_mean amax amin max min norm quantile".split())
_MIN_CHANGES = 3
_MAX_CALLS, _MAX_OBJECTS = 60, 32


@dataclass(frozen=True, slots=True)
class UnsavedAttribute:
    """An attribute that a loaded module uses as its constructor has made it."""

    name: str  # "self.mean"
    made: Call  # in the constructor of the loaded module
    changed: Call  # the last call that set the attribute before: in another method, or for another object
    load: Call
    used: Call  # after the load


def unsaved_attributes(facts: TraceIndex) -> Iterator[UnsavedAttribute]:
    """Yields these attributes, if the line that uses them has used changed values before, and nothing changes them
    after the load."""
    loads = list(module_loads(facts))
    for key, constructed, changes in _set(facts) if loads else ():
        last = constructed[-1]
        if len(constructed) < 2 or len(changes) < _MIN_CHANGES or changes[-1].index > last.index or last.inputs:
            continue
        load = _load_of(facts, last, loads)
        if load is None or not _is_statistic(facts, changes):
            continue
        used = _use(facts, last, load, changes)
        if used is not None:
            yield UnsavedAttribute(key[1], last, changes[-1], load, used)


def drawn_attributes(facts: TraceIndex) -> Iterator[UnsavedAttribute]:
    """Yields the attributes that the constructor of a module draws, if the line that uses that of the loaded object has
    used that of another one in a training before.

    A program that sets the seed again may draw the same, and one that trains the loaded object may want another one.
    """
    loads = list(module_loads(facts))
    if not loads or not facts.backwards:
        return
    modules = _modules(facts)
    for (owner, name), constructed, changes in _set(facts):
        last = constructed[-1]
        load = _load_of(facts, last, loads)
        if load is None or changes or len(constructed) < 2 or owner.split(".")[-1] not in modules:
            continue
        if not all(_is_drawn(facts, each) for each in constructed) or facts.backwards[-1].index > load.index:
            continue
        others = [each for each in constructed if each.index < facts.backwards[0].index]
        if not others or last in others or any(seed.index > others[0].index for seed in facts.trace.inspection.seeds):
            continue
        used = _use(facts, last, load, others)
        if used is not None:
            yield UnsavedAttribute(name, last, others[-1], load, used)


def _modules(facts: TraceIndex) -> set[str]:
    """Returns the names of the program's classes that are modules, by their bases."""
    classes = [node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = {node.name: {ast.unparse(each).rpartition(".")[2] for each in node.bases} for node in classes}
    found = set[str]()
    for _ in bases:  # each round reaches one class further down
        found |= {name for name, each in bases.items() if "Module" in each or each & found}
    return found


def _set(facts: TraceIndex) -> Iterator[tuple[tuple[str, str], list[Call], list[Call]]]:
    """Yields (class, attribute), the calls in constructors that set it, and those in other methods."""
    if _saves_itself(facts):
        return
    made, changed = defaultdict[tuple[str, str], list[Call]](list), defaultdict[tuple[str, str], list[Call]](list)
    for call in facts.calls:
        for key in _attributes(facts, call):
            is_constructor = facts.trace.sites[call.site].function.endswith("." + _CONSTRUCTOR)
            (made if is_constructor else changed)[key].append(call)
    for key, constructed in made.items():
        yield key, constructed, changed[key]


def _is_drawn(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a value is computed from random numbers, none of which a generator of its own gives."""
    above = (made for _, made in islice(ancestry(facts, call.outputs[0].tensor, call.index + 1), _MAX_CALLS))
    spans = [facts.span(made.site) for made in above if op_name(made) in DRAWS]
    is_own = all(span is not None and "generator" not in facts.names.syntax.text(span, 1_000) for span in spans)
    return bool(spans) and is_own


def _is_statistic(facts: TraceIndex, changes: list[Call]) -> bool:
    """Returns whether the last change makes a value of the one before and of a reduction of data, as an average does.

    The states of a recurrent layer, masks and caches of other sizes are none.
    """
    last = changes[-1]
    above = [made for _, made in islice(ancestry(facts, last.outputs[0].tensor, last.index + 1), _MAX_CALLS)]
    for previous in reversed(changes[-_MAX_OBJECTS:-1]):  # that of another object comes between, perhaps
        before = {access.tensor for access in previous.outputs}
        since = [made for made in above if made.index > previous.index]
        if any(op_name(made) in _AVERAGING for made in since if before & {access.tensor for access in made.inputs}):
            return any(op_name(made) in REDUCTIONS for made in since)
    return False


def _load_of(facts: TraceIndex, made: Call, loads: list[Call]) -> Call | None:
    """Returns a load of the first state dict that is loaded after a call, into the object that the call belongs to."""
    later = [each for each in loads if each.index > made.index]
    return next((each for each in later if each.site == later[0].site and _is_of_one_object(facts, made, each)), None)


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
    before the load, with gradients on or in the same mode.

    None if anything writes to it, or if that line only updates it without a graph.
    """
    number, own = made.outputs[0].tensor, {access.tensor for call in changes for access in call.outputs}
    before = {
        (call.site, call.mode)
        for call in facts.calls
        if call.index < load.index and own & {access.tensor for access in call.inputs}
    }
    lines = [call.site for call in changes[-1:]]
    for call in facts.calls_between(made.index + 1):
        if any(write.tensor == number for write in call.writes):
            return None
        inputs = {access.tensor for access in call.inputs}
        if call.index > load.index and number in inputs:
            is_change = call.mode != "grad" and any(facts.same_line(call.site, line) for line in lines)
            is_used = not {(call.site, "grad"), (call.site, call.mode)}.isdisjoint(before)
            return call if is_used and not own & inputs and not is_change else None
    return None
