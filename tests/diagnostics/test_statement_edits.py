"""Edits of whole statements keep the program's other statements."""

from __future__ import annotations

import ast
import functools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.folders import PROGRAMS
from support.traces import written_alias

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits import statements
from tensorlens.records.edits import edited
from tensorlens.records.model import Span
from tensorlens.records.report import Edit

FILE = "/home/ada/demo.py"
SMALL = """\
import torch
from torch.nn import functional as F

class Net:
    @property
    def size(self):
        text = '''a
        b'''
        if text:
            return 1  # one
        elif self:
            x = 2; y = 3
        else:
            for n in range(3): x = n
        self.a = (1 +
            2)
        return x
"""
FILES = [SMALL, *(path.read_text() for path in sorted(PROGRAMS.rglob("*.py")) if "endings" not in path.parts)]


@functools.lru_cache
def facts_of(source: str) -> TraceIndex:
    return TraceIndex(replace(written_alias("\n" * 9).trace, sources={FILE: source}))


def dumped(source: str) -> list[str]:
    return sorted(ast.dump(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt | ast.expr))


def simple(source: str) -> list[str]:
    """Returns the statements that have no block, in any order."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt) and not hasattr(node, "body"))
    return sorted(map(ast.dump, nodes))


sources = st.sampled_from(FILES)


@settings(deadline=None)
@given(sources, st.data())
def test_an_added_statement_changes_no_other(source: str, data: st.DataObject) -> None:
    line = data.draw(st.integers(1, source.count("\n")))
    for add in (statements.inserted_before, statements.inserted_after):
        edit = add(facts_of(source), FILE, line, "added(\n    1)")
        if edit is not None:
            assert simple(edited(source, [edit])) == sorted([*simple(source), ast.dump(ast.parse("added(1)").body[0])])


@settings(deadline=None)
@given(sources, st.data())
def test_a_moved_statement_stays_the_same(source: str, data: st.DataObject) -> None:
    line, target = (data.draw(st.integers(1, source.count("\n"))) for _ in range(2))
    for move in (statements.moved_before, statements.moved_after):
        edits = move(facts_of(source), FILE, line, target)
        if edits is not None:
            assert simple(edited(source, edits)) == simple(source)


@settings(deadline=None)
@given(sources, st.data())
def test_wrapped_statements_stay_the_same(source: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, source.count("\n")))
    last = data.draw(st.integers(first, min(first + 5, source.count("\n"))))
    edits = statements.wrapped(facts_of(source), FILE, first, last, "with torch.no_grad():")
    if edits is not None:
        assert simple(edited(source, edits)) == simple(source)
        assert edited(source, edits).count("with torch.no_grad():") == source.count("with torch.no_grad():") + 1


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        (7, True, True),  # a string over two lines
        (5, True, True),  # a decorator
        (9, True, True),
        (11, False, False),  # `elif`
        (12, False, False),  # two statements
        (14, False, False),  # a loop on one line
        (15, True, True),
        (99, False, False),
    ],
)
def test_statements_that_share_a_line_are_left_alone(line: int, before: bool, after: bool) -> None:
    facts = facts_of(SMALL)
    assert (statements.inserted_before(facts, FILE, line, "pass") is not None) == before
    assert (statements.inserted_after(facts, FILE, line, "pass") is not None) == after


def test_a_string_over_lines_keeps_its_text() -> None:
    facts = facts_of(SMALL)
    assert statements.wrapped(facts, FILE, 7, 7, "if True:") is None
    assert statements.moved_after(facts, FILE, 7, 10) is None
    assert statements.moved_after(facts, FILE, 15, 9) is not None


def test_the_last_statement_of_a_block_is_not_left_out() -> None:
    assert statements.without_statement(facts_of(SMALL), FILE, 10) is None
    edit = statements.without_statement(facts_of(SMALL), FILE, 15)
    assert edit is not None
    assert "self.a" not in edited(SMALL, [edit])


def test_modules_have_the_names_of_their_imports() -> None:
    facts = facts_of(SMALL)
    names = [statements.module_name(facts, FILE, module) for module in ("torch", "torch.nn.functional", "numpy")]
    assert names == ["torch", "F", None]


def test_edits_that_overlap_are_refused() -> None:
    first, second = Edit(Span(FILE, 1, 0, 1, 3), "a"), Edit(Span(FILE, 1, 2, 1, 5), "b")
    with pytest.raises(ValueError, match="overlap"):
        edited("abcdef", [first, second])
    with pytest.raises(ValueError, match="no line 2"):
        edited("abcdef", [Edit(Span(FILE, 2, 0, 2, 0), "")])
    assert edited("abc\r\ndef", [Edit(Span(FILE, 1, 3, 2, 1), "-")]) == "abc-ef"
