"""How often a line ran, as far as the trace establishes it.

Calls are recorded, runs of lines are not: a line that calls a module may make any number of calls, or none. An
expression that is one op ran once for each call. A line that runs with such an expression in one block, with no jump
between them, ran as often. Of any other line only this is known: it ran again if its function ran another
statement in between, or was called again.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.naming.places import callers, place_of
from tensorlens.analysis.story.blocks import Blocks, Statement
from tensorlens.records.model import Backward, Call, Failure, GradMode, Site, Trace

_Scope = tuple[str, str]  # file, function


@dataclass(frozen=True, slots=True, order=True)
class RunCount:
    """How often a line ran: exactly so often, or so often at the least."""

    times: int
    exact: bool

    @property
    def text(self) -> str:
        """`x3`, or `x3+`; "" for a line that ran once."""
        return "" if self.times == 1 and self.exact else f"x{self.times}" + ("" if self.exact else "+")


class LineRuns:
    """The runs of the statements of a trace."""

    def __init__(self, trace: Trace, names: Names) -> None:
        self._trace = trace
        self._names = names
        self._blocks = Blocks(trace.sources)
        self._statement = cache(self._statement_of)
        self._scope = cache(self._scope_of)
        self._outer = cache(self._outer_of)
        self._recursive = self._recursive_functions()
        self._computed = self._computations()
        self._begun = self._beginnings()
        failed = [number for failure in trace.failures for number in failure.stack]
        self._troubled = {self._scope(site) for site in failed}
        self._cut = trace.script.outcome not in ("ok", "error")

    def of(self, sites: Iterable[int]) -> RunCount:
        """How often the line of these sites ran: of several statements, as often as the one that ran most."""
        numbers = set(sites)
        statements = {found for number in numbers if (found := self._statement(number)) is not None}
        scope = next(map(self._scope, numbers), ("", ""))
        counts = [self._count(statement, scope) for statement in statements]
        if not counts:
            return RunCount(1, False)
        most = max(count.times for count in counts)
        return RunCount(most, any(count.exact for count in counts if count.times == most))

    def _statement_of(self, site: int) -> Statement | None:
        return self._blocks.statement(self._trace.sites[site])

    def _count(self, statement: Statement, scope: _Scope) -> RunCount:
        if statement.is_once and scope[1] == "<module>":
            return RunCount(1, True)
        own = 0 if statement.is_for else self._computed.get(statement.node, 0)
        least = max(1, self._begun.get(statement.node, 1))
        if own:
            return RunCount(max(own, least), True)
        if not self._cut and scope not in self._troubled:
            known = max((self._computed.get(node, 0) for node in statement.together()), default=0)
            if known:
                return RunCount(max(known, least), True)
        return RunCount(least, least == 1 and not statement.is_in_loop)  # one call of its function was seen

    def _computations(self) -> dict[ast.stmt, int]:
        """How often each statement ran of which an expression is one op that each run computes."""
        counts = Counter((e.site, e.op) for e in self._trace.events if isinstance(e, Call | Backward))
        counts |= Counter({(total.site, total.op): total.count for total in self._trace.totals})
        for failure in self._trace.failures:
            if failure.site is not None and failure.op is not None and not has_event(self._trace, failure):
                counts[failure.site, failure.op] += 1
        found: dict[ast.stmt, int] = {}
        for (number, op), count in counts.items():
            statement, site = self._statement(number), self._trace.sites[number]
            if statement is not None and self._names.syntax.is_direct(site, op) and self._blocks.is_computed(site):
                found[statement.node] = max(count, found.get(statement.node, 0))
        return found

    def _beginnings(self) -> dict[ast.stmt, int]:
        """The runs of each statement that began in the window: at least so many."""
        found: Counter[ast.stmt] = Counter()
        last: dict[_Scope, tuple[int, Statement]] = {}  # where each function was last seen, and when
        for event in self._trace.events:
            if not isinstance(event, Call | Backward | GradMode):
                continue
            statement, scope = self._statement(event.site), self._scope(event.site)
            if statement is None:
                continue
            when, before = last.get(scope, (-1, None))
            left = any(last[outer][0] > when for outer in self._outer(event.site) if outer in last)
            again = before is None or left or (before is not statement and scope not in self._recursive)
            if statement.is_with or statement.is_for:
                inside = before is not None and any(around is statement for around in before.around())
                again = again and inside if statement.is_for else again and (left or not inside)
            found[statement.node] += again
            last[scope] = event.index, statement
        return found

    def _scope_of(self, site: int) -> _Scope:
        return place_of(self._trace.sites[site])[:2]

    def _outer_of(self, site: int) -> frozenset[_Scope]:
        """The functions that a site was called from: while one of them goes on, that of the site has ended."""
        return frozenset(map(self._scope, callers(self._trace, site))) - {self._scope(site)}

    def _recursive_functions(self) -> set[_Scope]:
        found = set()
        for site in self._trace.sites:
            scope = self._scope(site.id)
            if any(self._scope(outer) == scope and not _is_inner(site) for outer in callers(self._trace, site.id)):
                found.add(scope)
        return found


def has_event(trace: Trace, failure: Failure) -> bool:
    """Whether the failed call is among the events too: a backward that raises is."""
    near = (trace.event(failure.index - 1), trace.event(failure.index))
    return any(event.site == failure.site and getattr(event, "failed", False) for event in near if event is not None)


def _is_inner(site: Site) -> bool:
    """Whether it is in a comprehension or a lambda, which its own function calls."""
    return site.function.endswith(">")
