"""Matches the tensors that library code made with the names under which a line stores them.

For `x, y = next(loader)` the recorded calls show which tensors were made and in which order, but not which of them
were returned. The evidence for a name is: the local variables seen in the frame, the names that other lines of the
function read, and the names at the end of the run. Without evidence no tensor gets the name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tensorlens.analysis.naming.places import Scope
from tensorlens.records.model import Call, Trace

Named = tuple[int, int, str]  # tensor, event, name
_Positions = dict[str, set[tuple[int, str]]]  # list -> positions in it, each with the op that made the tensor


@dataclass(slots=True)
class LineResults:
    """The tensors that one run of a line made, in order, with the calls that made them."""

    made: dict[int, Call] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)  # tensors that a call of the same run read
    value: tuple[int, ...] = ()  # made by the last call

    def lists(self) -> tuple[tuple[str, list[int]], ...]:
        """The tensors that no call of the run read, and all that it made. A name is matched by its tensor's position in
        one of these lists."""
        unread = [tensor for tensor in self.made if tensor not in self.used]
        return ("unread", unread), ("made", list(self.made))


class StoredValues:
    """The evidence for the names that lines store under. `read`: the tensors that each function reads by a name."""

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
        """Yields the tensors that the runs of a line made and stored, with the event and the name."""
        targets = self._trace.sites[site].targets
        names = list(dict.fromkeys([*targets, *self._looked_up.get(site, ())]))
        known = {name: positions for name in names if (positions := self._positions(site, name, runs))}
        for run in runs:
            for name in names:
                tensor = self._stored_by(site, name, run, known)
                if tensor is not None and not self._has_another(site, name, tensor, names):
                    yield tensor, run.made[tensor].index, name

    def _stored_by(self, site: int, name: str, run: LineResults, known: dict[str, _Positions]) -> int | None:
        """The tensor that a run of the line stored under a name."""
        for kind, tensors in run.lists() if name in known else ():
            for position, op in known[name].get(kind, set()):
                if len(known[name][kind]) == 1 and len(tensors) >= position and run.made[tensors[-position]].op == op:
                    return tensors[-position]
        single = len(self._trace.sites[site].targets) == 1 and name not in known and not name.startswith("*")
        return run.value[0] if single and len(run.value) == 1 and self._may_be(site, name) else None

    def _positions(self, site: int, name: str, runs: list[LineResults]) -> _Positions:
        """The positions of the name's tensors in each list, with the ops that made them. They count from the end,
        because a loader makes further tensors before its first batch."""
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

    def _may_be(self, site: int, name: str) -> bool:
        """Returns whether the output of the line's last call may be the line's value: no evidence says that the name
        means another tensor or a container."""
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
    """Collects the tensors that library code made for lines which store a value: one entry for each run, by site.

    `calls` says of each call whether it is the last of a run of its line; `is_direct` recognises calls that the
    line's own expression makes.
    """
    results: dict[int, list[LineResults]] = defaultdict(list)
    run = LineResults()
    for call, last in calls:
        run.used.update(access.tensor for access in call.inputs)
        made = [access.tensor for access in call.outputs if trace.tensors[access.tensor].created_by == call.index]
        run.made.update(dict.fromkeys(made, call))
        if last:
            run.value = tuple(made) if len(made) == len(call.outputs) else ()
            if trace.sites[call.site].targets and not is_direct(call):
                results[call.site].append(run)
            run = LineResults()
    return results
