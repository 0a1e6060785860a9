"""Counts the parameters of each module: how many require grad, had a gradient, and were changed by an optimizer.

A number is None if the trace does not establish it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.states import states_after
from tensorlens.analysis.trace_index import index_of
from tensorlens.analysis.training.run_summary import OptimizerChanges, had_gradient, is_complete
from tensorlens.analysis.training.timeline import training_of
from tensorlens.records.limits import LISTED_ITEMS
from tensorlens.records.model import State, Trace

MAX_ROWS = 12
FEW = 12  # parameters of one row
_PART = re.compile(r"\.?[^.\[]+|\[[^]]*\]")
_Owner = tuple[str, ...]  # the parts of a name: ("model", ".layers", "[0]")


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """The named parameters of a module, or of another object that holds some. None: not known."""

    name: str  # "model", "model.encoder"
    parameters: int  # each counts once, in the row of the first of its names
    require_grad: int | None  # as last recorded
    with_gradient: int | None  # ever
    changed: int | None  # by an optimizer
    versions: tuple[int, int] | None  # the lowest and the highest, as last recorded


def module_rows(trace: Trace, names: Names) -> tuple[ModuleRow, ...]:
    """Returns one row for each object that holds parameters, and for the parts of one that holds many."""
    facts = _ParameterFacts(trace)
    named = names_of_parameters(trace, names)
    cut = cut_lists(named.values())
    owners = {number: owner_of(name) for number, name in named.items() if list_of(name) not in cut}
    return tuple(facts.row("".join(owner), numbers) for owner, numbers in grouped(owners))


# --- names -----------------------------------------------------------------------------------------------------------


def names_of_parameters(trace: Trace, names: Names) -> dict[int, str]:
    """Maps the parameters to their names, in the order in which the run met them.

    A path that named several parameters in turn, because its module was made again, counts for the last one. A variable
    that did, or the path of a loop's variable, is no name of any of them.
    """
    held = {number for step in trace.inspection.steps for number in step.parameters}
    by_name: dict[str, list[int]] = defaultdict(list)
    for tensor in trace.tensors:
        if tensor.type.endswith("Parameter") or tensor.id in held:
            name = _module_path(names.all_names(tensor.id)) or names.script_name(tensor.id)
            if name:
                by_name[name].append(tensor.id)
    chosen = {numbers[-1]: name for name, numbers in by_name.items() if len(numbers) == 1 or _is_lasting(name, names)}
    return dict(sorted(chosen.items()))


def cut_lists(names: Iterable[str]) -> set[str]:
    """Returns the lists that may hold more parameters: only the first items of a list have names."""
    items = Counter(filter(None, map(list_of, names)))
    return {name for name, count in items.items() if count >= LISTED_ITEMS}


def list_of(name: str) -> str:
    """Returns the list that holds a parameter itself: `ps` of `ps[3]`; "" if a module or a variable does."""
    return name.rpartition("[")[0] if name.endswith("]") else ""


def _is_lasting(name: str, names: Names) -> bool:
    parts = _PART.findall(name)
    return len(parts) > 1 and parts[0] not in names.syntax.loop_names()


def _module_path(names: Iterable[str]) -> str | None:
    """Returns the name through a module, `model.fc.weight`, rather than one through a list, `params[0]`."""
    return next((name for name in names if "." in name and not name.endswith("]")), None)


def owner_of(name: str) -> _Owner:
    """Returns the object that holds a parameter, in parts; for a variable, the variable."""
    parts = _PART.findall(name)
    return tuple(parts[:-1] or parts)


def grouped(owners: dict[int, _Owner]) -> list[tuple[_Owner, list[int]]]:
    """Groups the parameters by the first part of their owners. Groups of many are split, the largest first."""
    groups: dict[_Owner, list[int]] = defaultdict(list)
    for number, owner in owners.items():
        groups[owner[: 2 if owner[0] == "self" else 1]].append(number)
    whole: set[_Owner] = set()  # groups that stay as they are
    while large := [owner for owner, numbers in groups.items() if len(numbers) > FEW and owner not in whole]:
        largest = max(large, key=lambda owner: len(groups[owner]))
        parts = _parts(largest, groups[largest], owners)
        if len(groups) - 1 + len(parts) > MAX_ROWS:
            parts = {largest: groups[largest]}
        whole |= {owner for owner, numbers in parts.items() if owner == largest or len(parts) == 1}
        places = list(groups)
        at = places.index(largest)
        after = {owner: groups[owner] for owner in places[at + 1 :]}
        groups = {owner: groups[owner] for owner in places[:at]} | parts | after
    return list(groups.items())


def _parts(owner: _Owner, numbers: list[int], owners: dict[int, _Owner]) -> dict[_Owner, list[int]]:
    """Splits a group at the next part of the owners in which they differ; the group itself if they do not."""
    for depth in range(len(owner) + 1, max(len(owners[number]) for number in numbers) + 1):
        parts: dict[_Owner, list[int]] = defaultdict(list)
        for number in numbers:
            parts[owners[number][:depth]].append(number)
        if len(parts) > 1:
            return parts
    return {owner: numbers}


# --- facts -----------------------------------------------------------------------------------------------------------


class _ParameterFacts:
    """Answers what happened to each parameter; None if a long run has folded the calls that show it."""

    def __init__(self, trace: Trace) -> None:
        facts = index_of(trace)
        training = training_of(facts)
        self._is_complete = is_complete(trace) and not training.is_hidden
        self._had_gradient = had_gradient(training)
        self._changes = OptimizerChanges(facts)
        at_end = {state.tensor: state for state in trace.end.states}
        recorded = {state.tensor: state for state in states_after(trace)} if self._is_complete else {}
        self._states: dict[int, State] = recorded | at_end

    def row(self, name: str, numbers: list[int]) -> ModuleRow:
        states = [self._states[number] for number in numbers if number in self._states]
        has_all = len(states) == len(numbers)
        versions = [state.version for state in states if state.version is not None]
        with_gradient = sum(number in self._had_gradient for number in numbers)
        changed = [self._changes.changed(number) for number in numbers]
        return ModuleRow(
            name,
            len(numbers),
            sum(state.requires_grad for state in states) if has_all else None,
            with_gradient if self._is_complete or with_gradient == len(numbers) else None,
            None if None in changed else sum(map(bool, changed)),
            (min(versions), max(versions)) if has_all and versions else None,
        )
