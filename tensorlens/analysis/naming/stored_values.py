"""Which of the tensors that library code made a line then stored, and under which of its names.

`x, y = ...` over a loader or a module: the calls below the line show what was made and in which order, not what came
back. The names are taken from what the frame was seen to hold, from the names that other lines of the same function use
and from those that the run ended with; where none of these says anything, no tensor is given a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tensorlens.records.model import Call, Trace

Named = tuple[int, int, str]  # tensor, event, name
Scope = tuple[str, str]  # file, function
_Places = dict[str, set[tuple[int, str]]]  # list -> places in it, each with the op that made the tensor


@dataclass(slots=True)
class LineResults:
    """The tensors that one run of a line made, in their order, with the calls that made them."""

    made: dict[int, Call] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)  # of these, what was used up there
    value: tuple[int, ...] = ()  # what the last call made

    def lists(self) -> tuple[tuple[str, list[int]], ...]:
        """What was left, and all that was made: a name's tensor is looked for by its place in one of them."""
        left = [tensor for tensor in self.made if tensor not in self.used]
        return ("left", left), ("made", list(self.made))


class StoredValues:
    """What is known of the names that lines store to. `heard`: by function, the tensors that a name was used for."""

    def __init__(self, trace: Trace, heard: Mapping[Scope, Mapping[str, set[int]]]) -> None:
        self._trace = trace
        self._heard = heard
        self._bound: dict[str, set[int]] = defaultdict(set)
        self._containers: set[tuple[str, str]] = set()  # function, name
        for binding in trace.end.bindings:
            self._bound[binding.name].add(binding.tensor)
            inner = min(filter(None, (len(binding.name.partition(mark)[0]) for mark in "[.")))
            if inner < len(binding.name):
                self._containers.add((binding.scope, binding.name[:inner]))
        self._seen: dict[tuple[int, str], set[int | None]] = defaultdict(set)
        for sighted in trace.inspection.sighted:
            for name, tensor in zip(sighted.names, sighted.tensors, strict=True):
                self._seen[sighted.site, name].add(tensor)
        self._looked_up = {sighted.site: sighted.names for sighted in trace.inspection.sighted}

    def named(self, site: int, visits: list[LineResults]) -> Iterator[Named]:
        """The names of the tensors that the visits of a site made."""
        targets = self._trace.sites[site].targets
        names = list(dict.fromkeys([*targets, *self._looked_up.get(site, ())]))
        known = {name: places for name in names if (places := self._places(site, name, visits))}
        for visit in visits:
            for name in names:
                tensor = self._of_visit(site, name, visit, known)
                if tensor is not None and not self._has_another(site, name, tensor, names):
                    yield tensor, visit.made[tensor].index, name

    def _of_visit(self, site: int, name: str, visit: LineResults, known: dict[str, _Places]) -> int | None:
        """The tensor that a run of the line stored under a name."""
        for kind, tensors in visit.lists() if name in known else ():
            for place, op in known[name].get(kind, set()):
                if len(known[name][kind]) == 1 and len(tensors) >= place and visit.made[tensors[-place]].op == op:
                    return tensors[-place]
        single = len(self._trace.sites[site].targets) == 1 and name not in known and not name.startswith("*")
        return visit.value[0] if single and len(visit.value) == 1 and self._may_be(site, name) else None

    def _places(self, site: int, name: str, visits: list[LineResults]) -> _Places:
        """Where in each list the name's tensor was, counted from the end, and which op made it: what a loader makes
        before its first batch comes first."""
        found: _Places = defaultdict(set)
        evidence = self._evidence(site, name)
        for visit in visits:
            for kind, tensors in visit.lists() if evidence else ():
                for place, tensor in enumerate(tensors):
                    if tensor in evidence:
                        found[kind].add((len(tensors) - place, visit.made[tensor].op))
        return found

    def _has_another(self, site: int, name: str, tensor: int, names: list[str]) -> bool:
        """Whether the function uses the tensor by another of the names that the line stores to."""
        heard = self._heard_at(site)
        others = [other for other in names if other != name and tensor in heard.get(other, ())]
        return bool(others) and tensor not in heard.get(name, ())

    def _heard_at(self, site: int) -> Mapping[str, set[int]]:
        known = self._trace.sites[site]
        return self._heard.get((known.span.file, known.function), {})

    def _evidence(self, site: int, name: str) -> set[int]:
        seen = {tensor for tensor in self._seen.get((site, name), ()) if tensor is not None}
        if seen:
            return seen  # what was looked at counts more than what the name meant elsewhere
        return self._heard_at(site).get(name, set()) | self._bound.get(name, set())

    def _may_be(self, site: int, name: str) -> bool:
        """Whether what the last call below a line made may be its value: nothing says that it is another, or one of
        several."""
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
    """The runs of each line that stores what library code made, by site. `calls`: each with whether it ends a run of
    its line; `is_direct`: whether the line's expression is the call itself."""
    found: dict[int, list[LineResults]] = defaultdict(list)
    visit = LineResults()
    for call, last in calls:
        visit.used.update(access.tensor for access in call.inputs)
        made = [access.tensor for access in call.outputs if trace.tensors[access.tensor].created_by == call.index]
        visit.made.update(dict.fromkeys(made, call))
        if last:
            visit.value = tuple(made) if len(made) == len(call.outputs) else ()
            if trace.sites[call.site].targets and not is_direct(call):
                found[call.site].append(visit)
            visit = LineResults()
    return found
