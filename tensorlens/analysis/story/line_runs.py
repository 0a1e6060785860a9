"""Counts how often a line ran, as far as the trace establishes it.

The trace has calls, not runs of lines: a line that calls a module may make any number of calls, or none.
- An expression that is one op ran once for each call of the op.
- A line in the same block as such an expression, with no jump between them, ran as often.
- Any other line ran again if its function ran another statement in between, or was called again: a minimum.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeGuard

from tensorlens.analysis.naming.blocks import Blocks, Statement
from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.naming.places import Scope, callers, place_of
from tensorlens.analysis.trace_index import has_event
from tensorlens.records.model import Backward, Call, Event, Failure, GradMode, Site, Trace

_PLACED = (Call, Backward, GradMode)
_SYNTAX_ERRORS = tuple(error.__name__ for error in (SyntaxError, IndentationError, TabError))
_HEADS = (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor)


@dataclass(frozen=True, slots=True, order=True)
class RunCount:
    """The number of runs of a line: exact, or a minimum."""

    times: int
    exact: bool

    @property
    def text(self) -> str:
        """`x3`, or `x3+`; "" for a line that ran once."""
        return "" if self.times == 1 and self.exact else f"x{self.times}" + ("" if self.exact else "+")


class LineRuns:
    """Counts the runs of the statements of a trace."""

    def __init__(self, trace: Trace, names: Names) -> None:
        self._trace = trace
        self._names = names
        self._blocks = Blocks(trace.sources)
        self._statement = cache(self._statement_of)
        self._scope = cache(self._scope_of)
        self._outer = cache(self._outer_of)
        self._recursive = self._recursive_functions()
        self._mixed = {self._scope(fact.site) for fact in trace.inspection.threads}
        self._computed = self._computations()
        self._begun = self._beginnings()
        failed = [number for failure in trace.failures for number in failure.stack]
        self._with_failures = {self._scope(site) for site in failed}
        self._unreadable = {failure.site for failure in trace.failures if self._is_of_compiler(failure)}
        self._cut_short = trace.script.outcome not in ("ok", "error")

    def count(self, sites: Iterable[int]) -> RunCount:
        """Counts the runs of the line of these sites; if it has several statements, of the one that ran most."""
        numbers = set(sites)
        statements = {each for number in numbers if (each := self._statement(number)) is not None}
        scope = next(map(self._scope, numbers), ("", ""))
        counts = [self._count(statement, scope) for statement in statements]
        if not counts:
            return RunCount(1, numbers <= self._unreadable)
        most = max(count.times for count in counts)
        return RunCount(most, any(count.exact for count in counts if count.times == most))

    def _is_of_compiler(self, failure: Failure) -> bool:
        """Returns whether Python could not read the line of a failure: the message names it, as in `(net.py, line 2)`.

        A program can raise a `SyntaxError` itself, whose message is its own.
        """
        if failure.site is None or failure.type not in _SYNTAX_ERRORS:
            return False
        return failure.message.endswith(f", line {place_of(self._trace.sites[failure.site])[2]})")

    def _statement_of(self, site: int) -> Statement | None:
        return self._blocks.statement(self._trace.sites[site])

    def _count(self, statement: Statement, scope: Scope) -> RunCount:
        if statement.is_once and scope[1] == "<module>":
            return RunCount(1, True)
        own = 0 if statement.is_for else self._computed.get(statement.node, 0)
        least = max(1, self._begun.get(statement.node, 1))
        if own:
            return RunCount(max(own, least), True)
        if not self._cut_short and scope not in self._with_failures:
            known = max((self._computed.get(node, 0) for node in statement.together()), default=0)
            if known:
                return RunCount(max(known, least), True)
        return RunCount(least, least == 1 and not statement.is_in_loop)  # one call of its function is recorded

    def _computations(self) -> dict[ast.stmt, int]:
        """Counts the runs of each statement with an expression that is one op and that every run computes."""
        counts = Counter((event.site, event.op) for event in self._trace.events if _is_computation(event))
        counts |= Counter({(total.site, total.op): total.count for total in self._trace.totals})
        for failure in self._trace.failures:
            if failure.site is not None and failure.op is not None and not has_event(self._trace, failure):
                counts[failure.site, failure.op] += 1
        runs: dict[ast.stmt, int] = {}
        for (number, op), count in counts.items():
            statement, site = self._statement(number), self._trace.sites[number]
            if statement is not None and self._names.syntax.is_direct(site, op) and self._blocks.is_computed(site):
                runs[statement.node] = max(count, runs.get(statement.node, 0))
        return runs

    def _beginnings(self) -> dict[ast.stmt, int]:
        """Counts for each statement the runs that certainly began among the recorded events: a minimum."""
        begun: Counter[ast.stmt] = Counter()
        last: dict[Scope, tuple[int, Statement]] = {}  # function -> its last event and statement
        place = cache(lambda site: (self._statement(site), self._scope(site), self._outer(site)))
        for event in self._trace.events:
            if not isinstance(event, _PLACED):
                continue
            statement, scope, outer = place(event.site)
            if statement is None or scope in self._mixed:  # another thread may have run the line before
                continue
            when, before = last.get(scope, (-1, None))
            left = bool(outer) and any(last[each][0] > when for each in outer if each in last)
            again = before is None or left or (before is not statement and scope not in self._recursive)
            if isinstance(statement.node, _HEADS):
                inside = before is not None and any(around is statement for around in before.around())
                again = again and inside if statement.is_for else again and (left or not inside)
            if again:
                begun[statement.node] += 1
            last[scope] = event.index, statement
        return begun

    def _scope_of(self, site: int) -> Scope:
        return place_of(self._trace.sites[site])[:2]

    def _outer_of(self, site: int) -> frozenset[Scope]:
        """Returns the functions that called a site's function. An event in one of them shows that the site's function
        ended."""
        return frozenset(map(self._scope, callers(self._trace, site))) - {self._scope(site)}

    def _recursive_functions(self) -> set[Scope]:
        recursive = set()
        for site in self._trace.sites:
            scope = self._scope(site.id)
            if _is_inner(site) or scope in recursive:
                continue
            if any(self._scope(outer) == scope for outer in callers(self._trace, site.id)):
                recursive.add(scope)
        return recursive


def _is_computation(event: Event) -> TypeGuard[Call | Backward]:
    """Returns whether an event is a run of an expression: not a backward pass of `autograd.grad`, whose call is an
    event too."""
    if isinstance(event, Call):
        return True
    return isinstance(event, Backward) and (event.op != "autograd.grad" or event.failed)


def _is_inner(site: Site) -> bool:
    """Returns whether the site is in a comprehension or a lambda, which its own function calls."""
    return site.function.endswith(">")
