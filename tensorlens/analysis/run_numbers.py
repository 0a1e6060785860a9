"""Finds which run of its line an event belongs to: the iteration of a loop, or the call of a function.

The trace has calls of torch, not runs of lines. What counts the runs of a line is a *clock*: a statement with an
expression that is one op, which every run of the statement computes exactly once. So each of its events is one run.
- A loop's own clock is a statement of its body that every iteration reaches. The loop began after the last run of a
  statement above it.
- A line ran as often as a clock in its own block, if nothing between the two can jump away.
- A line of a function that a loop calls belongs to the iteration in which clocks before and after it ran.

Where recorded events do not establish the number, there is none.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise, takewhile, zip_longest
from sys import maxsize
from typing import Literal

from tensorlens.analysis.clocks import Clocks
from tensorlens.analysis.naming.blocks import LOOPS, SCOPES, Statement, jumps
from tensorlens.analysis.naming.loops import LoopPlace, body_of, is_reached, loop_around, steady
from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.naming.places import Scope, callers, place_of
from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.records.model import Backward, Call, Trace


@dataclass(frozen=True, slots=True)
class RunNumber:
    """The number of an iteration, of a call of `function`, or of a run of a line, from 1."""

    kind: Literal["iteration", "call", "run"]
    number: int
    function: str = ""


def run_number(trace: Trace, event: Call | Backward) -> RunNumber | None:
    """Returns which run of its line an event belongs to. None if the line ran once, or if the number is not known."""
    return _runs_of(trace).number(event)


class _Runs:
    """Counts the runs of the statements of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._clocks = Clocks(trace)
        self._statement, self._scope = self._clocks.statement, self._clocks.scope
        self._ops = self._clocks.ops
        self._before_loop = cache(self._events_before_loop)
        self._counting = cache(self._events_counting)
        self._is_repeated = cache(lambda site: names_of(trace).syntax.parts.is_repeated(trace.sites[site]))

    def number(self, event: Call | Backward) -> RunNumber | None:
        statement = self._statement(event.site)
        if statement is None or self._scope(event.site) in self._clocks.unsteady:
            return None
        own = loop_around(statement)
        if own is not None and not self._is_repeated(event.site):
            number = self._iteration(own, event)
        else:
            number = None if own is not None else self._iteration_of_caller(event)
        if number is not None:
            return RunNumber("iteration", number) if number > 1 or self._runs_again(own, event) else None
        return self._run(event, statement)

    def _iteration(self, place: LoopPlace, event: Call | Backward) -> int | None:
        """Returns the number of the iteration of a loop around the event's own line."""
        begin = self._begin(place.loop, self._scope(event.site), event.index)
        clock = self._clock(place, event) if begin is not None else None
        if begin is None or clock is None:
            return None
        events, is_later = clock
        times = self._clocks.times(events, begin + 1, event.index)
        return None if times is None else times + is_later

    def _begin(self, loop: Statement, scope: Scope, before: int) -> int | None:
        """Returns the last event before the first iteration: one of a statement that runs each time before the loop.

        It is -1 for a loop that runs once, because it is at the top level and no other loop is around it.
        """
        events = self._before_loop(loop, scope)
        end = bisect_left(events, before)
        return events[end - 1] if end else None

    def _events_before_loop(self, loop: Statement, scope: Scope) -> list[int]:
        """Lists the events of the statements that run each time before a loop of a function, in order."""
        passed: list[list[int]] = []
        statement: Statement | None = loop
        while statement is not None and (statement is loop or not isinstance(statement.node, LOOPS)):
            above = statement.block[: statement.block.index(statement.node)]
            heads = () if statement is loop else (statement.node,)
            passed += [self._clocks.of[node][1] for node in (*heads, *above) if node in self._clocks.of]
            outer = statement.above
            if outer is None and self._clocks.is_script:
                passed.append([-1])
            elif outer is not None and isinstance(outer.node, SCOPES):
                passed.append(self._clocks.called[scope])
                break
            statement = outer
        return sorted(chain.from_iterable(passed))

    def _clock(self, place: LoopPlace, event: Call | Backward) -> tuple[list[int], bool] | None:
        """Returns the events that count iterations up to `event`, and whether this iteration's comes after it."""
        statement = self._statement(event.site)
        for at, node in enumerate(body_of(place.loop)):
            site, events = self._clocks.of.get(node, (-1, []))
            is_other = statement is None or statement.node is not node
            is_before = is_other or _contains(events, event.index) or self._clocks.is_inside(site, event.site)
            if events and at <= place.at and is_before:
                return events, False
            if events and (at > place.at or self._clocks.is_inside(event.site, site)):
                return events, True
            if jumps(node):
                return None
        return None

    def _iteration_of_caller(self, event: Call | Backward) -> int | None:
        """Returns the number of the iteration of a caller's loop, if it runs the event's line once an iteration."""
        for caller in callers(self._trace, event.site):
            statement, scope = self._statement(caller), self._scope(caller)
            if statement is None or scope in self._clocks.unsteady or scope == self._scope(event.site):
                continue
            place = loop_around(statement)
            if place is not None:
                return self._iteration_around(place, caller, event)
        return None

    def _iteration_around(self, place: LoopPlace, caller: int, event: Call | Backward) -> int | None:
        """Returns the number of the iteration in which `event` happened, from the events of the loop's function before
        and after it."""
        body = body_of(place.loop)
        begin = self._begin(place.loop, self._scope(caller), event.index)
        before, after = self._neighbours(self._scope(caller), event.index)
        previous, following = self._place_in(place.loop, before), self._place_in(place.loop, after)
        at = next((at for at, node in enumerate(steady(body)) if node in self._clocks.of), None)
        if begin is None or at is None or following is None or following < place.at:
            return None
        site, clock = self._clocks.of[body[at]]
        if at < place.at and previous is not None and at <= previous <= place.at:
            later = 0  # the clock of this iteration ran before
        elif (at > place.at or (at == place.at and self._clocks.is_inside(caller, site))) and (
            self._ended(place.loop, before) or (before == begin and self._is_first_run(caller, event))
        ):
            later = 1
        else:
            return None
        run = bisect_right(clock, event.index)
        low = clock[run - 1] if run else begin
        high = clock[run] if run < len(clock) else self._trace.events[-1].index
        times = self._clocks.times(clock, begin + 1, event.index)
        return (
            times + later
            if times is not None and self._clocks.times(self._ops[event.site, event.op], low, high) == 1
            else None
        )

    def _ended(self, loop: Statement, index: int) -> bool:
        """Returns whether an event is the last thing that an iteration does: its body ends with the event's call."""
        event = self._trace.event(index)
        last = body_of(loop)[-1]
        if not isinstance(event, Call | Backward) or self._place_in(loop, index) != len(body_of(loop)) - 1:
            return False
        calls = [node for node in ast.walk(last) if isinstance(node, ast.Call)]
        return not calls or calls == [self._clocks.syntax.node(self._trace.sites[event.site].span)]

    def _is_first_run(self, caller: int, event: Call | Backward) -> bool:
        """Returns whether `caller` is certainly the line that called the event's function: the trace knows the caller
        of the first run."""
        is_first = self._ops[event.site, event.op][0] == event.index and self._clocks.is_whole(0, event.index)
        return is_first and self._trace.sites[event.site].caller == caller

    def _neighbours(self, scope: Scope, index: int) -> tuple[int, int]:
        """Returns the last event of a function before event `index`, and the next: -1 where there is none."""
        events = self._clocks.events_in[scope]
        at = bisect_left(events, (index, -1))
        return (events[at - 1][0] if at else -1), (events[at][0] if at < len(events) else -1)

    def _place_in(self, loop: Statement, index: int) -> int | None:
        """Returns the place in a loop's body of the statement of an event; -1: of the failure that ended the script."""
        failure = self._trace.script.failure
        event = self._trace.event(index)
        sites = [event.site] if isinstance(event, Call | Backward) else []
        if index < 0 and failure is not None:
            sites = list(self._trace.failures[failure].stack)
        for site in sites:
            statement = self._statement(site)
            for each in () if statement is None else (statement, *statement.around()):
                if each.above is not None and each.above.node is loop.node and each.node in body_of(loop):
                    return body_of(loop).index(each.node)
        return None

    def _runs_again(self, own: LoopPlace | None, event: Call | Backward) -> bool:
        """Returns whether the line of an event certainly ran more than once."""
        events = self._ops[event.site, event.op]
        clock = self._clock(own, event) if own is not None else None
        return len(events if clock is None else clock[0]) > 1

    # --- runs of a line -----------------------------------------------------------------------------------------

    def _run(self, event: Call | Backward, statement: Statement) -> RunNumber | None:
        """Returns the number of the run of a line that no known loop repeats."""
        is_within = isinstance(event, Call) and bool(event.within)
        found = self._counting(event.site, event.op, is_within) if self._clocks.is_script else None
        if found is None:
            return None
        events, later = found
        times = self._clocks.times(events, 0, event.index)
        if times is None or len(events) < 2:
            return None
        site = self._trace.sites[event.site]
        function = place_of(site)[1]
        is_looped = loop_around(statement) is not None or isinstance(statement.node, ast.While)
        repeated = is_looped or self._is_repeated(event.site)
        if function == "<module>" or repeated or not is_reached(statement):
            return RunNumber("run", times + later)
        return RunNumber("call", times + later, function.rpartition("<locals>.")[2])

    def _events_counting(self, number: int, op: str, is_within: bool) -> tuple[list[int], bool] | None:
        """Returns events that count the runs of a line, one each, and whether the one of a run comes after its calls
        of `op`, which an optimizer's step makes if `is_within`."""
        site, statement = self._trace.sites[number], self._statement(number)
        if is_within:
            return [step.index for step in self._trace.inspection.steps if step.site == number], False
        if self._clocks.syntax.is_direct(site, op):
            return self._ops[number, op], False
        if statement is None or self._is_repeated(number) or statement.is_for:
            return None
        clock, events = self._clocks.of.get(statement.node, (-1, []))
        if events and self._clocks.is_inside(number, clock):
            return events, True
        at = statement.block.index(statement.node)
        for node in _until_jump(statement.block[:at][::-1]):
            if node in self._clocks.of:
                return self._clocks.of[node][1], False
        own = self._ops[number, op]
        beside = (*_until_jump(statement.block[:at][::-1]), *_until_jump(statement.block[at + 1 :]))
        others = (self._ops[key] for node in beside for key in self._clocks.keys.get(node, ()))
        if not jumps(statement.node) and any(_alternate(own, other) for other in others):
            return own, False  # one run makes all calls of one line before those of the other
        return None


def _contains(events: list[int], index: int) -> bool:
    at = bisect_left(events, index)
    return at < len(events) and events[at] == index


def _until_jump(nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
    return list(takewhile(lambda node: not jumps(node), nodes))


def _alternate(one: list[int], other: list[int]) -> bool:
    """Returns whether two kinds of events took turns."""
    first, second = (one, other) if one < other else (other, one)
    pairs = list(zip_longest(first, second, fillvalue=maxsize))
    return (
        len(pairs) == len(first) > 1
        and all(a < b for a, b in pairs)
        and all(before[1] < after[0] for before, after in pairwise(pairs))
    )


@once_per_trace
def _runs_of(trace: Trace) -> _Runs:
    return _Runs(trace)
