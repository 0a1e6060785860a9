"""Finds the outer loop of a training whose first round a number of steps is: one of several tasks or windows.

The number of its rounds is known by the lines of its body that no inner loop repeats, or by the numbers in its head.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile

from tensorlens.analysis.code_around import statement_at, upwards
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.written_numbers import only_value, written_number
from tensorlens.records.model import Span

_Loop = ast.For | ast.While


def first_round_of(facts: TraceIndex, site: int, steps: int, at: tuple[float, float]) -> Span | None:
    """Returns the head of the loop whose rounds make equally many of some steps, if its first round ends `at` these.

    `site` makes a step. The loop has another one in it, which repeats the step, or calls a function that has one.
    """
    for file, loop in _outer_loops(facts, site):
        rounds = rounds_of(facts, file, loop)
        if any(number > 1 and at[0] <= steps / number <= at[1] for number in rounds):
            return facts.span_of(loop.iter if isinstance(loop, ast.For) else loop.test, file)
    return None


def _outer_loops(facts: TraceIndex, site: int) -> Iterator[tuple[str, _Loop]]:
    """Yields the loops around a step but the innermost, which repeats it, each with its file."""
    inside = 0
    for each in facts.call_chain(site):
        span = facts.span(each)
        loops = [] if span is None else _loops_around(facts, span.file, span.line)
        for place, loop in enumerate(loops):
            if inside + place and span is not None:
                yield span.file, loop
        inside += len(loops)


def _loops_around(facts: TraceIndex, file: str, line: int) -> list[_Loop]:
    """Returns the loops of one function whose bodies cover a line, the innermost first."""
    statement = statement_at(facts, file, line)
    around = () if statement is None else upwards(facts, file, statement)
    own = takewhile(lambda each: not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef), around)
    return [each for each in own if isinstance(each, _Loop) and each.body[0].lineno <= line]


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def rounds_of(facts: TraceIndex, file: str, loop: _Loop) -> set[int]:
    """Returns how often lines of a loop's body have run that no other loop repeats, and the number in its head."""
    found, head = set[int](), loop.iter if isinstance(loop, ast.For) else None
    others = [node for node in ast.walk(loop) if isinstance(node, ast.For | ast.While | ast.If) and node is not loop]
    for site in facts.trace.sites:
        line = site.span.line
        is_own = site.span.file == file and loop.body[0].lineno <= line <= _end(loop.body[-1])
        if is_own and not any(each.lineno <= line <= _end(each) for each in others):
            found.add(facts.times_run(site.id, 0)[1])
    if isinstance(head, ast.Name):
        head = only_value(facts, head.id)
    if isinstance(head, ast.List | ast.Tuple):
        found.add(len(head.elts))
    elif isinstance(head, ast.Call) and ast.unparse(head.func) == "range" and len(head.args) == 1:
        found.add(int(written_number(facts, head.args[0]) or 0))
    return found
