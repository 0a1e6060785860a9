"""Finds the step that changes a module after a line of a loop has kept it for sure."""

from __future__ import annotations

import ast
from bisect import bisect
from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise

from tensorlens.analysis.code_around import block_around, function_around, loop_around_line, statement_at, upwards
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span
from tensorlens.records.observations import Step

Loop = ast.For | ast.While
_INSIDE = (ast.With, ast.AsyncWith, ast.Try, ast.For)  # these run their bodies, once or more
_ROUNDS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def step_after(
    facts: TraceIndex, file: str, loop: Loop, kept: ast.stmt, steps: Sequence[Step], parameters: Collection[int]
) -> Step | None:
    """Returns the last step of a loop that changes one of some parameters, if the loop has kept them before.

    `kept`: the statement of the loop that keeps them, or calls a function that does. A line beside it that runs once in
    each round shows that its round is over. It counts from the first step of the parameters on: a loop may make them.
    """
    own = [step for step in steps if _changes(step, parameters)]
    inside = [step for step in own if step.site is not None and _in_loop(facts, file, loop, step.site) is not None]
    if not inside:
        return None
    first, last = _lines_beside(facts, file, loop, kept)
    times, ranks = [step.index for step in own], defaultdict[int, set[int]](set)
    for site, index in _events(facts):
        if own[0].index < index < inside[-1].index:
            ranks[site].add(bisect(times, index))
    for site in (site for site, found in ranks.items() if len(found) > 1):  # steps are between its runs
        span = _in_loop(facts, file, loop, site)
        if span is not None and first <= span.line <= last and _is_once(facts, loop, site, span):
            return inside[-1]
    return None


def _changes(step: Step, parameters: Collection[int]) -> bool:
    pairs = zip(step.parameters, step.gradients, strict=True)
    return any(number in parameters and gradient is not None for number, gradient in pairs)


@lru_cache(maxsize=2)
def _events(facts: TraceIndex) -> tuple[tuple[int, int], ...]:
    """Returns where and when the program called something."""
    calls = [(call.site, call.index) for call in facts.calls if not call.within]
    return (*calls, *((each.site, each.index) for each in facts.backwards))


def _in_loop(facts: TraceIndex, file: str, loop: Loop, site: int) -> Span | None:
    """Returns the line of a loop's body that led to a site, or is the site."""
    first, last = loop.body[0].lineno, loop.body[-1].end_lineno or 0
    spans = (facts.trace.sites[each].span for each in facts.call_chain(site))
    return next((span for span in spans if span.file == file and first <= span.line <= last), None)


def _lines_beside(facts: TraceIndex, file: str, loop: Loop, kept: ast.stmt) -> tuple[int, int]:
    """Returns the first and the last line of what runs whenever a statement does, as far as the block shows it."""
    outer = kept
    for statement in [*upwards(facts, file, kept)][1:]:
        if statement is loop or not isinstance(statement, _INSIDE):
            break
        outer = statement
    block = block_around(facts, file, outer) or [outer]
    before = block[: next((place for place, each in enumerate(block) if each is outer), 0)]
    skips = [each.end_lineno or 0 for each in before if any(isinstance(node, ast.Continue) for node in ast.walk(each))]
    return max([block[0].lineno, *(line + 1 for line in skips)]), block[-1].end_lineno or 0


def _is_once(facts: TraceIndex, loop: Loop, site: int, own: Span) -> bool:
    """Returns whether a site runs once in each round of a loop: no other loop is between them, also in functions."""
    if loop_around_line(facts, own.file, own.line) is not loop:
        return False
    spans = [facts.trace.sites[each].span for each in facts.call_chain(site)]
    spans = spans[: spans.index(own) + 1]
    for inner, outer in pairwise(spans):
        function, statement = function_around(facts, inner.file, inner.line), _plain_at(facts, outer)
        if function is None or loop_around_line(facts, inner.file, inner.line) is not None or statement is None:
            return False
        if [called_name(node) for node in ast.walk(statement)].count(function.name) != 1:
            return False  # another function calls it, perhaps several times
    return _plain_at(facts, spans[0]) is not None


def _plain_at(facts: TraceIndex, span: Span) -> ast.stmt | None:
    """Returns the statement of a line, unless a part of it runs several times."""
    statement = statement_at(facts, span.file, span.line)
    is_plain = statement is not None and not any(isinstance(node, _ROUNDS) for node in ast.walk(statement))
    return statement if is_plain else None
