"""Finds initial values that a function sets for some parameters, and that it overwrites with those for all of them.

`self.apply(init_weights)` at the end of a constructor does so with the bias that a line before it has set.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.parameters.lost_values import uses_of
from tensorlens.records.model import Call, Gap

_WHOLE = frozenset("zero fill normal uniform".split())
_CONSTRUCTORS = ("__init__", "reset_parameters", "_reset_parameters")


@dataclass(frozen=True, slots=True)
class LostStart:
    """A line that sets initial values, and one that overwrites all of them before anything reads them."""

    first: Call
    second: Call
    caller: int  # site of the function that led to both, at the second one
    rows: tuple[ParameterRow, ...]
    overwritten: int  # parameters that the second line sets


def lost_starts(training: MeasuredTraining) -> Iterator[LostStart]:
    """Yields these lines, if the second one sets more parameters than the first."""
    facts = training.facts
    rows = {row.tensor: row for row in training.rows if row.is_stepped}
    sets: dict[int, list[Call]] = defaultdict(list)
    by_site: dict[int, set[int]] = defaultdict(set)
    for call in facts.calls:
        number = call.writes[0].tensor if len(call.writes) == 1 else -1
        if number in rows and _is_whole(facts, call, number):
            sets[number].append(call)
            by_site[call.site].add(number)
    again = {number: calls for number, calls in sets.items() if len(calls) > 1}
    uses = uses_of(training, set(again)) if again else {}
    lost: dict[tuple[int, int], list[tuple[ParameterRow, Call, Call]]] = defaultdict(list)
    for number, calls in again.items():
        for first, second in pairwise(calls):
            place = bisect_right(uses[number], first.index)
            is_next = place < len(uses[number]) and uses[number][place] == second.index
            is_again = any(call.site == first.site and call.index > second.index for call in calls)
            is_own = not facts.trace.sites[first.site].through and first.op != second.op
            if is_next and is_own and not is_again and not _has_gap(facts, first.index, second.index):
                lost[first.site, second.site].append((rows[number], first, second))
    for (one, other), found in lost.items():
        _, first, second = found[0]
        caller = _common(facts, first, second) if first.site != second.site else None
        is_all = {row.tensor for row, _, _ in found} == by_site[one]
        if caller is not None and is_all and len(by_site[other]) > len(by_site[one]):
            yield LostStart(first, second, caller, tuple(row for row, _, _ in found), len(by_site[other]))


def _is_whole(facts: TraceIndex, call: Call, number: int) -> bool:
    """Returns whether a line of the program, not a constructor of a library, gives a parameter new values."""
    is_own = not facts.trace.sites[call.site].through or call.op.startswith("nn.init.")
    is_new = call.op.startswith("nn.init.") or op_name(call) in _WHOLE
    return is_own and is_new and facts.tensor(call.writes[0].tensor).shape == facts.tensor(number).shape


def _has_gap(facts: TraceIndex, first: int, last: int) -> bool:
    """Returns whether code that is not recorded ran between two events."""
    return any(isinstance(event, Gap) and first < event.index < last for event in facts.events)


def _common(facts: TraceIndex, first: Call, second: Call) -> int | None:
    """Returns the line of a function that led to the second call, if an earlier line of it led to the first one, and no
    constructor of another class did."""
    scopes = {facts.scope(site): site for site in reversed(facts.call_chain(second.site))}
    names = facts.trace.sites
    for site in facts.call_chain(first.site):
        if facts.scope(site) in scopes:
            other = scopes[facts.scope(site)]
            maker, scope = names[first.site].function, names[site].function
            holder = scope.rpartition(".")[0]
            if maker != scope and (not holder or maker.rpartition(".")[0] != holder):
                return None  # a function of another class, or of none, made the default
            one_line, other_line = facts.span(site), facts.span(other)
            is_after = one_line is not None and other_line is not None and one_line.line < other_line.line
            return other if is_after else None
        if facts.trace.sites[site].function.endswith(_CONSTRUCTORS):
            return None
    return None
