"""Holds docstrings, comments and documents to plain words: no private idiom, and a verb at the start of a docstring."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.folders import ROOT

IDIOMS = re.compile(
    r"\b(told|tells?|telling|(come|comes|came) to\b(?! an end)|stands?\b(?! (for|out))|lies|in peace|heard|hears|handed"
    r"|hands? (back|on|over)|(of|by) ours|another than|meanwhile|by then)\b",
    re.IGNORECASE,
)
NOUN_CLAUSE = re.compile(r"(What|How|Whether|Where|When|Which|Why)\b")
EXEMPT = (  # written as users write
    "tests/programs/",
    "tests/data/",
    "tests/catalogue/scripts/",
    "tests/advice/cases/",
    "tests/advice/first_try/",
    "tests/advice/repaired/",
    "tests/test_words.py",
)
WRITTEN_BY_RUNS = ("docs/hardest.md", "docs/catalogue.md")  # quote programs


def _files(*patterns: str) -> list[Path]:
    found = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return [p for p in found if not str(p.relative_to(ROOT)).startswith((*EXEMPT, *WRITTEN_BY_RUNS))]


SOURCES = _files("tensorlens/**/*.py", "tests/**/*.py", "tools/*.py", "benchmarks/*.py", "hatch_build.py")
DOCUMENTS = _files("*.md", "docs/*.md", "tensorlens/**/*.md")


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_and_comments_are_plain(path: Path) -> None:
    docstrings = list(_docstrings(path))
    idioms = [(line, text) for line, text in (*docstrings, *_comments(path)) if IDIOMS.search(text)]
    assert [
        *idioms,
        *((line, text) for line, text in docstrings if NOUN_CLAUSE.match(text) and "?" not in text),
    ] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_are_plain(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if IDIOMS.search(line) and not line.startswith("| ")] == []  # tables name programs
