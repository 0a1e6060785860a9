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
import os
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from tensorlens.analysis.naming.blocks import LOOPS, SCOPES, Blocks, Statement, jumps
from tensorlens.analysis.naming.loops import LoopPlace, body_of, is_in_generator, is_reached, loop_around, steady
from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.naming.places import Scope, callers, place_of
from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.analysis.trace_index import has_event
from tensorlens.records.model import Backward, Call, Gap, GradMode, Trace


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
        self._syntax = names_of(trace).syntax
        self._blocks = Blocks(trace.sources)
        self._statement = cache(lambda site: self._blocks.statement(trace.sites[site]))
        self._scope = cache(lambda site: place_of(trace.sites[site])[:2])
        self._is_script = _is_whole_script(trace)  # else the recording may have begun inside a loop
        self._ops: dict[tuple[int, str], list[int]] = defaultdict(list)  # (site, op) -> its events
        self._entered: dict[int, list[int]] = defaultdict(list)  # site of `with torch.no_grad():` -> its events
        self._called: dict[Scope, list[int]] = defaultdict(list)  # function under `@torch.no_grad()` -> its calls
        self._scopes: dict[Scope, list[tuple[int, int]]] = defaultdict(list)  # function -> (event, site)
        self._clocks: dict[ast.stmt, tuple[int, list[int]]] = {}  # statement -> site of its clock, and the events
        self._unsteady = set(self._find_unsteady())
        self._read()

    def number(self, event: Call | Backward) -> RunNumber | None:
        statement = self._statement(event.site)
        if statement is None or self._scope(event.site) in self._unsteady:
            return None
        own = loop_around(statement)
        if own is not None and not self._syntax.parts.is_repeated(self._trace.sites[event.site]):
            number = self._iteration(own, event)
        else:
            number = None if own is not None else self._iteration_of_caller(event)
        if number is not None:
            return RunNumber("iteration", number) if number > 1 or self._runs_again(own, event) else None
        return self._run(event, statement)

    def _read(self) -> None:
        gaps = set()
        for event in self._trace.events:
            if isinstance(event, Call | Backward):
                self._ops[event.site, event.op].append(event.index)
                if self._scope(event.site)[1] == self._trace.sites[event.site].function:  # not in a lambda
                    self._scopes[self._scope(event.site)].append((event.index, event.site))
            elif isinstance(event, GradMode) and event.entering and event.decorator:
                self._called[self._scope(event.site)].append(event.index)
            elif isinstance(event, GradMode) and event.entering:
                self._entered[event.site].append(event.index)
            elif isinstance(event, Gap) and event.site is not None:
                gaps.add(self._statement(event.site))
        for failure in self._trace.failures:
            if failure.site is not None and failure.op is not None and not has_event(self._trace, failure):
                insort(self._ops[failure.site, failure.op], failure.index)
        for number, events in (*self._direct(), *self._entered.items()):
            statement = self._statement(number)
            known = None if statement is None else self._clocks.get(statement.node)
            if statement is None or statement in gaps or isinstance(statement.node, LOOPS):
                continue  # the head of a `while` runs once more than its body
            if known is None or events[0] < known[1][0]:
                self._clocks[statement.node] = number, events

    def _direct(self) -> Iterator[tuple[int, list[int]]]:
        """Yields each expression that is one op and that every run of its statement computes, with the op's events."""
        for (number, op), events in self._ops.items():
            site = self._trace.sites[number]
            is_optimizer = op.startswith("optim.") and site.through == f"{op.removeprefix('optim.')}.__init__"
            if (is_optimizer or self._syntax.is_direct(site, op)) and self._blocks.is_computed(site):
                yield number, events

    def _find_unsteady(self) -> Iterator[Scope]:
        """Yields the functions of which several runs may mix: those that call themselves, and generators."""
        for site in self._trace.sites:
            scope, statement = self._scope(site.id), self._statement(site.id)
            is_inner = site.function.endswith(">") and site.function != "<module>"
            if not is_inner and any(self._scope(outer) == scope for outer in callers(self._trace, site.id)):
                yield scope
            if statement is not None and is_in_generator(statement):
                yield scope

    def _is_whole(self, first: int, last: int) -> bool:
        """Returns whether all events from `first` to `last` are kept: a long run folds earlier ones."""
        return self._trace.position(last) - self._trace.position(first) == last - first

    def _times(self, events: Sequence[int], first: int, last: int) -> int | None:
        """Counts the events from `first` to `last`, both inclusive; None if some are folded."""
        kept = self._trace.events
        first, last = max(first, 0), min(last, kept[-1].index)
        if not self._is_whole(first, last):
            return None
        return bisect_right(events, last) - bisect_left(events, first)

    def _iteration(self, place: LoopPlace, event: Call | Backward) -> int | None:
        """Returns the number of the iteration of a loop around the event's own line."""
        begin = self._begin(place.loop, self._scope(event.site), event.index)
        clock = self._clock(place, event) if begin is not None else None
        if begin is None or clock is None:
            return None
        events, is_later = clock
        times = self._times(events, begin + 1, event.index)
        return None if times is None else times + is_later

    def _begin(self, loop: Statement, scope: Scope, before: int) -> int | None:
        """Returns the last event before the first iteration: one of a statement that runs each time before the loop.

        It is -1 for a loop that runs once, because it is at the top level and no other loop is around it.
        """
        passed: list[list[int]] = []
        statement: Statement | None = loop
        while statement is not None and (statement is loop or not isinstance(statement.node, LOOPS)):
            above = statement.block[: statement.block.index(statement.node)]
            heads = () if statement is loop else (statement.node,)
            passed += [self._clocks[node][1] for node in (*heads, *above) if node in self._clocks]
            outer = statement.above
            if outer is None and self._is_script:
                passed.append([-1])
            elif outer is not None and isinstance(outer.node, SCOPES):
                passed.append(self._called[scope])
                break
            statement = outer
        ends = [bisect_left(events, before) for events in passed]
        return max((events[end - 1] for events, end in zip(passed, ends, strict=True) if end), default=None)

    def _clock(self, place: LoopPlace, event: Call | Backward) -> tuple[list[int], bool] | None:
        """Returns the events that count iterations up to `event`, and whether this iteration's comes after it."""
        statement = self._statement(event.site)
        for at, node in enumerate(body_of(place.loop)):
            site, events = self._clocks.get(node, (-1, []))
            is_other = statement is None or statement.node is not node
            is_before = is_other or event.index in events or self._is_inside(site, event.site)
            if events and at <= place.at and is_before:
                return events, False
            if events and (at > place.at or self._is_inside(event.site, site)):
                return events, True
            if jumps(node):
                return None
        return None

    def _is_inside(self, site: int, outer: int) -> bool:
        """Returns whether the expression at a site is an operand of that at `outer`, so that it is computed first."""
        if site < 0 or outer < 0 or isinstance(self._syntax.node(self._trace.sites[outer].span), ast.With):
            return False
        inner, around = self._trace.sites[site].span, self._trace.sites[outer].span
        begins = (around.line, around.column) <= (inner.line, inner.column)
        ends = (inner.end_line, inner.end_column) <= (around.end_line, around.end_column)
        return site != outer and inner.file == around.file and begins and ends

    def _iteration_of_caller(self, event: Call | Backward) -> int | None:
        """Returns the number of the iteration of a caller's loop, if it runs the event's line once an iteration."""
        for caller in callers(self._trace, event.site):
            statement, scope = self._statement(caller), self._scope(caller)
            if statement is None or scope in self._unsteady or scope == self._scope(event.site):
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
        at = next((at for at, node in enumerate(steady(body)) if node in self._clocks), None)
        if begin is None or at is None or following is None or following < place.at:
            return None
        site, clock = self._clocks[body[at]]
        if at < place.at and previous is not None and at <= previous <= place.at:
            later = 0  # the clock of this iteration ran before
        elif (at > place.at or (at == place.at and self._is_inside(caller, site))) and (
            self._ended(place.loop, before) or (before == begin and self._is_first_run(caller, event))
        ):
            later = 1
        else:
            return None
        run = bisect_right(clock, event.index)
        low = clock[run - 1] if run else begin
        high = clock[run] if run < len(clock) else self._trace.events[-1].index
        times = self._times(clock, begin + 1, event.index)
        return (
            times + later
            if times is not None and self._times(self._ops[event.site, event.op], low, high) == 1
            else None
        )

    def _ended(self, loop: Statement, index: int) -> bool:
        """Returns whether an event is the last thing that an iteration does: its body ends with the event's call."""
        event = self._trace.event(index)
        last = body_of(loop)[-1]
        if not isinstance(event, Call | Backward) or self._place_in(loop, index) != len(body_of(loop)) - 1:
            return False
        calls = [node for node in ast.walk(last) if isinstance(node, ast.Call)]
        return not calls or calls == [self._syntax.node(self._trace.sites[event.site].span)]

    def _is_first_run(self, caller: int, event: Call | Backward) -> bool:
        """Returns whether `caller` is certainly the line that called the event's function: the trace knows the caller
        of the first run."""
        is_first = self._ops[event.site, event.op][0] == event.index and self._is_whole(0, event.index)
        return is_first and self._trace.sites[event.site].caller == caller

    def _neighbours(self, scope: Scope, index: int) -> tuple[int, int]:
        """Returns the last event of a function before event `index`, and the next: -1 where there is none."""
        events = self._scopes[scope]
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
        found = self._line_events(event, statement) if self._is_script else None
        if found is None:
            return None
        events, later = found
        times = self._times(events, 0, event.index)
        if times is None or len(events) < 2:
            return None
        site = self._trace.sites[event.site]
        function = place_of(site)[1]
        is_looped = loop_around(statement) is not None or isinstance(statement.node, ast.While)
        repeated = is_looped or self._syntax.parts.is_repeated(site)
        if function == "<module>" or repeated or not is_reached(statement):
            return RunNumber("run", times + later)
        return RunNumber("call", times + later, function.rpartition("<locals>.")[2])

    def _line_events(self, event: Call | Backward, statement: Statement) -> tuple[list[int], bool] | None:
        """Returns events that count the runs of a line, one each, and whether this run's comes after `event`."""
        site = self._trace.sites[event.site]
        within = isinstance(event, Call) and bool(event.within)
        if not within and self._syntax.is_direct(site, event.op):
            return self._ops[event.site, event.op], False
        if isinstance(event, Call) and event.within:
            steps = [step.index for step in self._trace.inspection.steps if step.site == event.site]
            return steps, False
        if self._syntax.parts.is_repeated(site) or statement.is_for:
            return None
        clock, events = self._clocks.get(statement.node, (-1, []))
        if events and self._is_inside(event.site, clock):
            return events, True
        at = statement.block.index(statement.node)
        for node in statement.block[:at][::-1]:
            if jumps(node):
                break
            if node in self._clocks:
                return self._clocks[node][1], False
        return None


def _is_whole_script(trace: Trace) -> bool:
    """Returns whether the recording began with the script: not with a `tensorlens.trace()` in its source."""
    path = f"{trace.script.folder}{os.sep}{os.path.basename(trace.script.path)}"
    return "tensorlens" not in trace.sources.get(path, "tensorlens")


@once_per_trace
def _runs_of(trace: Trace) -> _Runs:
    return _Runs(trace)
