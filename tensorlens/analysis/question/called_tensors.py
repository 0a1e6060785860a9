"""Finds the tensors that a script calls by a name, and the names closest to one that no tensor has."""

from __future__ import annotations

import re
from collections import defaultdict
from difflib import get_close_matches

from tensorlens.analysis.naming.places import Scope, place_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.failure_context import Assignment

_Rank = tuple[bool, bool, int]  # whether the name is one of the module, of the end; the event that gave it
_LONGEST = 120  # characters of a name that others are compared with
_CLOSE = 3


class CalledTensors:
    """The names of a run's tensors. With `at`, the names up to that event, those of its function first."""

    def __init__(self, facts: TraceIndex, at: int | None = None) -> None:
        self._facts = facts
        self._at = at
        self._scope = self._scope_of(at)
        self._ranks: dict[str, dict[int, _Rank]] = defaultdict(dict)  # name -> tensors
        self._collect()
        self._kept = set(self._ranks)  # names under which something keeps a tensor, not `x.data`
        self._collect_reads()

    def tensors(self, name: str) -> list[int]:
        """Returns the tensors that the script called so, one after the other; the last comes last."""
        key = plain(name)
        ranks = self._ranks.get(key, {})
        return sorted(ranks, key=lambda number: (ranks[number], number))

    def members(self, name: str) -> list[tuple[str, int]]:
        """Returns the tensors that an object holds, each with its name."""
        begins = (f"{plain(name)}.", f"{plain(name)}[")
        return [(key, self.tensors(key)[-1]) for key in self._ranks if key.startswith(begins) and key in self._kept]

    def closest(self, name: str) -> list[str]:
        """Returns the names of tensors that are most like a name, the closest first."""
        known = [key for key in self._ranks if len(key) <= _LONGEST]
        return get_close_matches(plain(name)[:_LONGEST], known, _CLOSE, 0.6)

    def _collect(self) -> None:
        names = self._facts.names
        for binding in self._facts.trace.end.bindings:
            if self._exists(binding.tensor):
                is_sure = self._at is None
                born = self._facts.tensor(binding.tensor).created_by or 0
                self._note(binding.name, binding.tensor, (is_sure and binding.scope == "<module>", is_sure, born))
        for tensor, stores in names.stores.items():
            for event, name in stores.items():
                if self._at is None or event <= self._at:
                    here = self._at is not None and self._scope_of(event) == self._scope
                    self._note(name, tensor, (here, here, event))
        for reached in self._facts.trace.inspection.reached:
            for name, tensor in zip(reached.names, reached.tensors, strict=True):
                if self._exists(tensor):
                    self._note(name, tensor, (False, False, self._facts.tensor(tensor).created_by or 0))

    def _collect_reads(self) -> None:
        """Adds the names by which expressions read tensors, and those of parameters that took the place of another."""
        for tensor, reads in self._facts.names.reads.items():
            for scope, name in reads.items():
                if self._exists(tensor):
                    self._note(name, tensor, (scope == self._scope, False, self._facts.tensor(tensor).created_by or 0))

        for assignment in self._facts.trace.assignments:
            if self._at is None or assignment.index <= self._at:
                self._replace(assignment)

    def _replace(self, assignment: Assignment) -> None:
        """Gives a parameter the names of the one whose place in a module it takes."""
        if len(assignment.old) != 1 or len(assignment.new) != 1 or self._is_used(assignment.old[0], assignment.index):
            return
        names = [name for name, ranks in self._ranks.items() if assignment.old[0] in ranks]
        for name in names:
            if name.endswith(f".{assignment.name}"):
                self._note(name, assignment.new[0], (False, False, assignment.index))

    def _is_used(self, number: int, since: int) -> bool:
        """Returns whether a recorded operation used a tensor after an event: then something else may still have it."""
        calls = (call for call in reversed(self._facts.calls) if call.nodes[1] > call.nodes[0] and not call.within)
        uses = (call for call in calls if any(access.tensor == number for access in call.inputs))
        last = next(uses, None)
        return last is not None and last.index >= since

    def _note(self, name: str, tensor: int, rank: _Rank) -> None:
        ranks = self._ranks[plain(name)]
        ranks[tensor] = max(rank, ranks.get(tensor, rank))

    def _exists(self, tensor: int) -> bool:
        """Returns whether a tensor may have existed at the event."""
        created = self._facts.tensor(tensor).created_by
        return self._at is None or created is None or created <= self._at

    def _scope_of(self, index: int | None) -> Scope | None:
        event = None if index is None else self._facts.event(index)
        site = None if event is None else event.site
        return None if site is None else place_of(self._facts.trace.sites[site])[:2]


def plain(name: str) -> str:
    """Returns a name as the trace writes it: without blanks, with single quotes."""
    return re.sub(r"\s+", "", name).replace('"', "'")
