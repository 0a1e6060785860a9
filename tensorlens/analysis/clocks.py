"""Finds the statements whose recorded events count their runs, one event for each run.

A *clock* is a statement with an expression that is one op and that every run of the statement computes exactly once.
"""

from __future__ import annotations

import ast
import os
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

from tensorlens.analysis.naming.blocks import LOOPS, Blocks
from tensorlens.analysis.naming.loops import is_in_generator
from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.naming.places import Scope, callers, place_of
from tensorlens.analysis.trace_index import has_event
from tensorlens.records.model import Backward, Call, Gap, GradMode, Trace

_THREADS = ("import threading", "from threading", "concurrent.futures", "ThreadPool")


class Clocks:
    """Indexes the events of a trace by statement, op and function, and finds the clock of each statement."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.syntax = names_of(trace).syntax
        self._blocks = Blocks(trace.sources)
        self.statement = cache(lambda site: self._blocks.statement(trace.sites[site]))
        self.scope = cache(lambda site: place_of(trace.sites[site])[:2])
        self.is_script = _is_whole_script(trace)  # else the recording may have begun inside a loop
        self.ops: dict[tuple[int, str], list[int]] = defaultdict(list)  # (site, op) -> its events
        self._entered: dict[int, list[int]] = defaultdict(list)  # site of `with torch.no_grad():` -> its events
        self.called: dict[Scope, list[int]] = defaultdict(list)  # function under `@torch.no_grad()` -> its calls
        self.keys: dict[ast.stmt, list[tuple[int, str]]] = defaultdict(list)  # statement -> the sites and ops in it
        self.events_in: dict[Scope, list[tuple[int, int]]] = defaultdict(list)  # function -> (event, site)
        self.of: dict[ast.stmt, tuple[int, list[int]]] = {}  # statement -> site of its clock, and the events
        self.unsteady = set(self._find_unsteady())
        self._read()

    def _read(self) -> None:
        gaps = set()
        for event in self._trace.events:
            if isinstance(event, Call | Backward):
                self.ops[event.site, event.op].append(event.index)
                if self.scope(event.site)[1] == self._trace.sites[event.site].function:  # not in a lambda
                    self.events_in[self.scope(event.site)].append((event.index, event.site))
            elif isinstance(event, GradMode) and event.entering and event.decorator:
                self.called[self.scope(event.site)].append(event.index)
            elif isinstance(event, GradMode) and event.entering:
                self._entered[event.site].append(event.index)
            elif isinstance(event, Gap) and event.site is not None:
                gaps.add(self.statement(event.site))
        for failure in self._trace.failures:
            if failure.site is not None and failure.op is not None and not has_event(self._trace, failure):
                insort(self.ops[failure.site, failure.op], failure.index)
        for key in self.ops:
            statement = self.statement(key[0])
            if statement is not None and self._blocks.is_computed(self._trace.sites[key[0]]):
                self.keys[statement.node].append(key)
        for number, events in (*self._direct(), *self._entered.items()):
            statement = self.statement(number)
            known = None if statement is None else self.of.get(statement.node)
            if statement is None or statement in gaps or isinstance(statement.node, LOOPS):
                continue  # the head of a `while` runs once more than its body
            if known is None or events[0] < known[1][0]:
                self.of[statement.node] = number, events

    def _direct(self) -> Iterator[tuple[int, list[int]]]:
        """Yields each expression that is one op and that every run of its statement computes, with the op's events."""
        for (number, op), events in self.ops.items():
            site = self._trace.sites[number]
            is_optimizer = op.startswith("optim.") and site.through == f"{op.removeprefix('optim.')}.__init__"
            if (is_optimizer or self.syntax.is_direct(site, op)) and self._blocks.is_computed(site):
                yield number, events

    def _find_unsteady(self) -> Iterator[Scope]:
        """Yields the functions of which several runs may mix: those that call themselves, generators, and those that
        several threads run."""
        yield from (self.scope(fact.site) for fact in self._trace.inspection.threads)
        for site in self._trace.sites:
            scope, statement = self.scope(site.id), self.statement(site.id)
            is_inner = site.function.endswith(">") and site.function != "<module>"
            if not is_inner and any(self.scope(outer) == scope for outer in callers(self._trace, site.id)):
                yield scope
            if statement is not None and is_in_generator(statement):
                yield scope

    def is_whole(self, first: int, last: int) -> bool:
        """Returns whether all events from `first` to `last` are kept: a long run folds earlier ones."""
        return self._trace.position(last) - self._trace.position(first) == last - first

    def times(self, events: Sequence[int], first: int, last: int) -> int | None:
        """Counts the events from `first` to `last`, both inclusive; None if some are folded."""
        kept = self._trace.events
        first, last = max(first, 0), min(last, kept[-1].index)
        if not self.is_whole(first, last):
            return None
        return bisect_right(events, last) - bisect_left(events, first)

    def is_inside(self, site: int, outer: int) -> bool:
        """Returns whether the expression at a site is an operand of that at `outer`, so that it is computed first."""
        if site < 0 or outer < 0 or isinstance(self.syntax.node(self._trace.sites[outer].span), ast.With):
            return False
        inner, around = self._trace.sites[site].span, self._trace.sites[outer].span
        begins = (around.line, around.column) <= (inner.line, inner.column)
        ends = (inner.end_line, inner.end_column) <= (around.end_line, around.end_column)
        return site != outer and inner.file == around.file and begins and ends


def _is_whole_script(trace: Trace) -> bool:
    """Returns whether every call of a recorded function is recorded.

    That is not so if the recording began with a `tensorlens.trace()`, or if compiled code ran. Where the script starts
    threads, the calls of several may mix.
    """
    path = f"{trace.script.folder}{os.sep}{os.path.basename(trace.script.path)}"
    unseen = any("what runs inside is not seen" in event.reason for event in trace.events if isinstance(event, Gap))
    files = {trace.sites[event.site].span.file for event in trace.events if isinstance(event, Call)}
    files |= {file for file in trace.sources if file.startswith(trace.script.folder)}
    threads = any(word in trace.sources.get(file, "") for file in files for word in _THREADS)
    return not unseen and not threads and "tensorlens" not in trace.sources.get(path, "tensorlens")
