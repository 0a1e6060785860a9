"""Matches the tensors that library code made with the names under which a line stores them.

For `x, y = next(loader)` the recorded calls show which tensors were made and in which order, but not which of them were
returned. The evidence for a name is what the frame's local variables were bound to. If they were not seen, it is the
names that other lines of the function read, and the names at the end of the run. Without evidence no tensor gets the
name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tensorlens.analysis.naming.places import Scope
from tensorlens.records.model import Call, Trace

Named = tuple[int, int, str]  # tensor, event, name
_Positions = dict[str, set[tuple[int, str]]]  # kind of `LineResults.lists` -> (position from the end, op)


@dataclass(slots=True)
class LineResults:
    """The tensors that one run of a line made, in order, with the calls that made them."""

    made: dict[int, Call] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)  # tensors that a call of the same run read
    value: tuple[int, ...] = ()  # the tensors that the last call made

    def lists(self) -> tuple[tuple[str, list[int]], ...]:
        """Returns two lists of tensors: those that no call of the run read, and all that it made.

        A name is matched by the position of its tensor in one of these lists.
        """
        unread = [tensor for tensor in self.made if tensor not in self.used]
        return ("unread", unread), ("made", list(self.made))


class StoredValues:
    """Finds the tensors that lines store. `read` maps functions to the names that they read, and to their tensors."""

    def __init__(self, trace: Trace, read: Mapping[Scope, Mapping[str, set[int]]]) -> None:
        self._trace = trace
        self._read = read
        self._bound: dict[str, set[int]] = defaultdict(set)
        self._containers: set[tuple[str, str]] = set()  # function, name
        for binding in trace.end.bindings:
            self._bound[binding.name].add(binding.tensor)
            end = min(filter(None, (len(binding.name.partition(mark)[0]) for mark in "[.")))
            if end < len(binding.name):
                self._containers.add((binding.scope, binding.name[:end]))
        self._seen: dict[tuple[int, str], set[int | None]] = defaultdict(set)
        for sighted in trace.inspection.sighted:
            for name, tensor in zip(sighted.names, sighted.tensors, strict=True):
                self._seen[sighted.site, name].add(tensor)
        self._looked_up = {sighted.site: sighted.names for sighted in trace.inspection.sighted}

    def named(self, site: int, runs: list[LineResults]) -> Iterator[Named]:
        """Yields (tensor, event, name) for the tensors that the runs of a line made and stored."""
        targets = self._trace.sites[site].targets
        names = list(dict.fromkeys([*targets, *self._looked_up.get(site, ())]))
        known = {name: positions for name in names if (positions := self._positions(site, name, runs))}
        for run in runs:
            for name in names:
                tensor = self._stored_by(site, name, run, known)
                if tensor is not None and not self._has_another(site, name, tensor, names):
                    yield tensor, run.made[tensor].index, name

    def _stored_by(self, site: int, name: str, run: LineResults, known: dict[str, _Positions]) -> int | None:
        """Returns the tensor that a run of the line stored under a name."""
        for kind, tensors in run.lists() if name in known else ():
            for position, op in known[name].get(kind, set()):
                if len(known[name][kind]) == 1 and len(tensors) >= position and run.made[tensors[-position]].op == op:
                    return tensors[-position]
        single = len(self._trace.sites[site].targets) == 1 and name not in known and not name.startswith("*")
        return run.value[0] if single and len(run.value) == 1 and self._may_name_value(site, name) else None

    def _positions(self, site: int, name: str, runs: list[LineResults]) -> _Positions:
        """Returns where the name's tensors are in each list, and the ops that made them.

        Positions count from the end, because a loader makes additional tensors before its first batch.
        """
        positions: _Positions = defaultdict(set)
        evidence = self._evidence(site, name)
        for run in runs:
            for kind, tensors in run.lists() if evidence else ():
                for position, tensor in enumerate(tensors):
                    if tensor in evidence:
                        positions[kind].add((len(tensors) - position, run.made[tensor].op))
        return positions

    def _has_another(self, site: int, name: str, tensor: int, names: list[str]) -> bool:
        """Returns whether the function reads the tensor by another of the names that the line stores under."""
        read = self._read_at(site)
        others = [other for other in names if other != name and tensor in read.get(other, ())]
        return bool(others) and tensor not in read.get(name, ())

    def _read_at(self, site: int) -> Mapping[str, set[int]]:
        known = self._trace.sites[site]
        return self._read.get((known.span.file, known.function), {})

    def _evidence(self, site: int, name: str) -> set[int]:
        seen = {tensor for tensor in self._seen.get((site, name), ()) if tensor is not None}
        if seen:
            return seen  # the frame itself is better evidence than other lines
        return self._read_at(site).get(name, set()) | self._bound.get(name, set())

    def _may_name_value(self, site: int, name: str) -> bool:
        """Returns whether the name may mean the output of the line's last call: no evidence says that it means another
        tensor or a container."""
        if (self._trace.sites[site].function, name) in self._containers and name not in self._bound:
            return False
        seen = self._seen.get((site, name))
        if not seen:
            return True
        made = [self._trace.tensors[tensor].created_by for tensor in seen if tensor is not None]
        return bool(made) and all(index is None for index in made)  # a long run has folded the call


def results_by_site(
    trace: Trace, calls: Iterable[tuple[Call, bool]], is_direct: Callable[[Call], bool]
) -> dict[int, list[LineResults]]:
    """Collects, by site, the tensors that library code made in each run of a line that stores a value.

    `calls` has for each call whether it is the last in a run of its line. `is_direct` recognises calls that the line's
    own expression makes.
    """
    results: dict[int, list[LineResults]] = defaultdict(list)
    run: LineResults | None = None
    for call, last in calls:
        if last and run is None and (not trace.sites[call.site].targets or is_direct(call)):
            continue  # a line with this one call, which needs no evidence
        run = run or LineResults()
        run.used.update(access.tensor for access in call.inputs)
        made = [access.tensor for access in call.outputs if trace.tensors[access.tensor].created_by == call.index]
        run.made.update(dict.fromkeys(made, call))
        if last:
            run.value = tuple(made) if len(made) == len(call.outputs) else ()
            if trace.sites[call.site].targets and not is_direct(call):
                results[call.site].append(run)
            run = None
    return results
