"""Which of the tensors that library code made a line then stored, and under which of its names.

`x, y = ...` over a loader or a module: the calls below the line show what was made and in which order, not what came
back. The names are taken from what the frame was seen to hold, from the names that other lines of the same function use
and from those that the run ended with; where none of these says anything, no tensor is given a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tensorlens.model import Call, Trace

Named = tuple[int, int, str]  # tensor, event, name
Scope = tuple[str, str]  # file, function


@dataclass(slots=True)
class Visit:
    """The tensors that one run of a line left: made below it and not used up there, in their order."""

    left: dict[int, int] = field(default_factory=dict)  # tensor -> the call that made it
    value: tuple[int, ...] = ()  # what the last call made


class Stored:
    """What is known of the names that lines store to. `heard`: by function, the tensors that a name was used for."""

    def __init__(self, trace: Trace, heard: Mapping[Scope, Mapping[str, set[int]]]) -> None:
        self._trace = trace
        self._heard = heard
        self._bound: dict[str, set[int]] = defaultdict(set)
        for binding in trace.end.bindings:
            self._bound[binding.name].add(binding.tensor)
        self._seen: dict[tuple[int, str], set[int | None]] = defaultdict(set)
        for sighted in trace.inspection.sighted:
            for name, tensor in zip(sighted.names, sighted.tensors, strict=True):
                self._seen[sighted.site, name].add(tensor)
        self._starred = {
            sighted.site: [name for name in sighted.names if name.endswith("]")]
            for sighted in trace.inspection.sighted
        }

    def named(self, site: int, visits: list[Visit]) -> Iterator[Named]:
        """The names of the tensors that the visits of a site left."""
        targets = self._trace.sites[site].targets
        names = [name for name in targets if not name.startswith("*")]
        names += [name for name in self._starred.get(site, ()) if name not in names]
        known = {name: places for name in names if (places := self._places(site, name, visits))}
        for visit in visits:
            size = len(visit.left)
            made = list(visit.left.items())
            for name in names:
                if name in known and size in known[name]:
                    yield (*made[known[name][size]], name)
                elif len(targets) == 1 and name not in known and len(visit.value) == 1 and self._may_be(site, name):
                    tensor = visit.value[0]
                    yield tensor, visit.left.get(tensor, 0), name

    def _places(self, site: int, name: str, visits: list[Visit]) -> dict[int, int]:
        """Which of the tensors left is the name's, by their number; none where the runs of the line disagree."""
        found: dict[int, set[int]] = defaultdict(set)
        evidence = self._evidence(site, name)
        for visit in visits:
            for place, tensor in enumerate(visit.left):
                if tensor in evidence:
                    found[len(visit.left)].add(place)
        return {size: places.pop() for size, places in found.items() if len(places) == 1}

    def _evidence(self, site: int, name: str) -> set[int]:
        seen = {tensor for tensor in self._seen.get((site, name), ()) if tensor is not None}
        if seen:
            return seen  # what was looked at counts more than what the name meant elsewhere
        known = self._trace.sites[site]
        heard = self._heard.get((known.span.file, known.function), {}).get(name, set())
        return heard | self._bound.get(name, set())

    def _may_be(self, site: int, name: str) -> bool:
        """Whether what the last call below a line made may be its value: nothing says that it is another."""
        seen = self._seen.get((site, name))
        if not seen:
            return True
        made = [self._trace.tensors[tensor].created_by for tensor in seen if tensor is not None]
        return bool(made) and all(index is None for index in made)  # a long run has folded the call


def visits_of(
    trace: Trace, calls: Iterable[tuple[Call, bool]], is_direct: Callable[[Call], bool]
) -> dict[int, list[Visit]]:
    """The runs of each line that stores what library code made, by site. `calls`: each with whether it ends a run of
    its line; `is_direct`: whether the line's expression is the call itself."""
    found: dict[int, list[Visit]] = defaultdict(list)
    visit = Visit()
    for call, last in calls:
        for access in call.inputs:
            visit.left.pop(access.tensor, None)
        made = [access.tensor for access in call.outputs if trace.tensors[access.tensor].created_by == call.index]
        visit.left.update(dict.fromkeys(made, call.index))
        if last:
            visit.value = tuple(made) if len(made) == len(call.outputs) else ()
            if trace.sites[call.site].targets and not is_direct(call):
                found[call.site].append(visit)
            visit = Visit()
    return found
