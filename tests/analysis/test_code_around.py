"""The statement, loop, function and block around a line are those that a walk through the whole file finds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import pytest
import torch
from support.folders import PROGRAMS

import tensorlens
from tensorlens.analysis import code_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span, Trace

FILE = "program.py"
NESTED = """
import functools; x = 1; y = [
    x for x in (1, 2)]

@functools.cache
@functools.wraps(
    print)
def outer(a):
    async def inner(b):
        async with b: await b
        for _ in range(3): x = (
            b)
        else:
            while x: x -= 1
    class Held:
        @property
        def value(self): return 1
    try:
        if a: return 1
        elif x: return 2
        else: return 3
    except (ValueError,
            TypeError) as error: raise error
    else: pass
    finally:
        with a as b, b as c:
            return inner
"""
MATCHED = """
def kind(value):
    match value:
        case [1, *rest] if rest:
            for each in rest:
                print(each)
        case {"a": 1}: return 1
        case _:
            pass
    return (value
            ); value = 2
"""
Part = ast.AST | None


def index_of(text: str) -> TraceIndex:
    with tensorlens.trace() as run:
        torch.ones(1)
    made = run.trace()
    return TraceIndex(Trace(made.versions, made.script, {FILE: text}, (), (), (), ()))


def walked_statements(facts: TraceIndex) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(facts.tree(FILE)) if isinstance(node, ast.stmt))


def walked_head(facts: TraceIndex, line: int) -> Part:
    found: ast.stmt | None = None
    for each in walked_statements(facts):
        body = getattr(each, "body", None)
        end = max(each.lineno, code_around.first_line(body[0]) - 1) if body else each.end_lineno
        if code_around.first_line(each) <= line <= (end or 0) and (found is None or found.lineno <= each.lineno):
            found = each
    return found


def walked_function(facts: TraceIndex, line: int) -> Part:
    functions = (each for each in walked_statements(facts) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    around = [each for each in functions if each.body[0].lineno <= line <= (each.end_lineno or 0)]
    return max(around, key=lambda each: each.lineno, default=None)


def walked_loop(facts: TraceIndex, line: int) -> Part:
    function = walked_function(facts, line)
    begin = function.lineno if isinstance(function, ast.stmt) else 0
    loops = (each for each in walked_statements(facts) if isinstance(each, ast.For | ast.While) and each.lineno > begin)
    around = [each for each in loops if each.body[0].lineno <= line <= (each.body[-1].end_lineno or 0)]
    return max(around, key=lambda each: each.lineno, default=None)


def walked_around(facts: TraceIndex, span: Span) -> Part:
    around = [each for each in walked_statements(facts) if code_around.is_inside(span, facts.span_of(each, FILE))]
    return max(around, key=lambda each: (each.lineno, each.col_offset), default=None)


def texts() -> list[object]:
    files = sorted(PROGRAMS.rglob("*.py"))[::60]
    shown = [pytest.param(NESTED, id="nested"), pytest.param(MATCHED, id="matched")]
    return [*shown, *(pytest.param(file.read_text(), id=file.stem) for file in files)]


def test_the_texts_are_python() -> None:
    assert ast.parse(NESTED).body
    assert ast.parse(MATCHED).body


@pytest.mark.parametrize("text", texts())
def test_a_search_finds_what_a_walk_finds(text: str) -> None:
    facts = index_of(text)
    for line in range(text.count("\n") + 2):
        assert code_around.statement_at(facts, FILE, line) is walked_head(facts, line)
        assert code_around.function_around(facts, FILE, line) is walked_function(facts, line)
        assert code_around.loop_around_line(facts, FILE, line) is walked_loop(facts, line)


@pytest.mark.parametrize("text", [NESTED, MATCHED], ids=["nested", "matched"])
def test_a_part_of_the_source_has_a_statement_a_parent_and_a_block(text: str) -> None:
    facts = index_of(text)
    for node in ast.walk(facts.tree(FILE)):
        for child in ast.iter_child_nodes(node):
            assert code_around.parent_of(facts, FILE, child) is node or isinstance(child, ast.expr_context)
            if isinstance(child, ast.expr | ast.stmt):
                span = facts.span_of(child, FILE)
                assert code_around.statement_around(facts, span) is walked_around(facts, span)
            if isinstance(child, ast.stmt):
                assert any(each is child for each in code_around.block_around(facts, FILE, child))
                assert next(code_around.upwards(facts, FILE, child)) is child


def searches() -> list[Callable[[TraceIndex, int], object]]:
    return [
        lambda facts, line: code_around.statement_at(facts, FILE, line),
        lambda facts, line: code_around.statement_around(facts, Span(FILE, line, line, 0, 6)),
        lambda facts, line: code_around.function_around(facts, FILE, line),
        lambda facts, line: code_around.loop_around_line(facts, FILE, line),
    ]


@pytest.mark.parametrize("search", searches(), ids=["statement", "around", "function", "loop"])
def test_a_search_in_a_long_file_looks_at_few_statements(
    monkeypatch: pytest.MonkeyPatch, search: Callable[[TraceIndex, int], object]
) -> None:
    facts = index_of("x += 1\n" * 4_000)
    looks, first_line = 0, code_around.first_line

    def counted(statement: ast.stmt) -> int:
        nonlocal looks
        looks += 1
        return first_line(statement)

    monkeypatch.setattr(code_around, "first_line", counted)
    search(facts, 3_000)
    assert 0 < looks < 10
