"""The bundled lessons run as plain scripts and as lessons, and the documented statements come out as recorded."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from support.warm import Ran, Warm

from tensorlens.lessons.article_statements import STATEMENTS
from tensorlens.lessons.bundled import Lesson, lessons
from tensorlens.lessons.check_statements import check_documented, claimed, summed_up
from tensorlens.records import claim_syntax
from tensorlens.records.invariants import validate
from tensorlens.records.model import Trace

LESSONS = lessons()
ENDS_IN = {
    "detach": "element 0 of tensors does not require grad and does not have a grad_fn",
    "detach-backward": "element 0 of tensors does not require grad and does not have a grad_fn",
    "detach-write": "modified by an inplace operation",
}
REFUTED = "000-5 000-7 000-10 000-18 002-5 002-9 002-10 002-11 003-2 003-4 003-5 004-2".split()
CONDITIONS = {
    "000-9": "backward reads an overwritten value",
    "000-15": "the clone is recorded",
    "000-16": "gradients are being recorded",
    "000-20": "`retain_grad()` was not called",
    "001-5": "the graph keeps alive what would be freed",
    "001-7": "its elements are Python floats",
    "001-9": "no gradient from before is left",
    "002-1": "it is about values or the clone is not recorded",
    "002-2": "the source is a view into a larger storage",
    "002-3": "the source is dense, no nn.Parameter, and does not require grad",
    "002-4": "a value with history is carried from step to step",
    "003-3": "it works in place",
}
MAY = {"000-3": "backward reads an overwritten value"}

Traced = Callable[[Path], tuple[Ran, Trace]]

each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def ended_as_expected(lesson: Lesson, ran: Ran) -> bool:
    if lesson.name in ENDS_IN:
        return ran.returncode == 1 and ENDS_IN[lesson.name] in ran.stderr.splitlines()[-1]
    return ran.returncode == 0


@pytest.fixture(scope="module")
def traced(warm: Warm) -> Traced:
    """Each lesson run once under the lens."""
    return cache(warm.traced)


@each_lesson
def test_under_plain_python(lesson: Lesson, warm: Warm) -> None:
    ran = warm.plain(lesson.path)
    assert ended_as_expected(lesson, ran), ran.stderr
    assert len(ran.stdout.splitlines()) <= 10
    if lesson.name == "detach-untouched":
        assert "UserWarning: The .grad attribute of a Tensor that is not a leaf" in ran.stderr
    elif lesson.name not in ENDS_IN:
        assert ran.stderr == ""


@each_lesson
def test_claims_are_as_recorded(lesson: Lesson, warm: Warm, traced: Traced) -> None:
    ran, trace = traced(lesson.path)
    assert ended_as_expected(lesson, ran), ran.stderr
    assert ran.stdout == warm.plain(lesson.path).stdout
    assert trace.claims
    assert [claim for claim in trace.claims if not claim.as_expected or claim.error] == []
    assert validate(trace) == []


@each_lesson
def test_another_recorded_verdict_is_noticed(lesson: Lesson, warm: Warm, tmp_path: Path) -> None:
    def flipped(found: re.Match[str]) -> str:
        return found[1] + ("holds" if found[2] == "refuted" else "refuted")

    text, count = re.subn(r"^( *#: \[[\d-]+\] )(holds|refuted)", flipped, lesson.path.read_text(), flags=re.MULTILINE)
    script = tmp_path / lesson.path.name
    script.write_text(text)
    _, trace = warm.traced(script)
    assert count == len([claim for claim in trace.claims if claim.id and not claim.as_expected])


def test_verdicts(traced: Traced) -> None:
    checked = summed_up(STATEMENTS, [(lesson.name, traced(lesson.path)[1].claims) for lesson in LESSONS], "2.13")
    assert checked.as_recorded
    found = {finding.statement.id: (finding.verdict, finding.condition) for finding in checked.findings}
    assert found == {
        statement.id: (
            ("holds only if", CONDITIONS[statement.id])
            if statement.id in CONDITIONS
            else ("refuted" if statement.id in REFUTED else "holds", MAY.get(statement.id, ""))
        )
        for statement in STATEMENTS
    }


def test_the_lens_changes_no_verdict(traced: Traced) -> None:
    untraced = {finding.statement.id: finding for finding in check_documented(None).findings}
    seen = summed_up(STATEMENTS, [(lesson.name, traced(lesson.path)[1].claims) for lesson in LESSONS], "")
    assert untraced == {finding.statement.id: finding for finding in seen.findings}


def test_every_statement_is_checked_somewhere() -> None:
    assert set().union(*map(claimed, LESSONS)) == {statement.id for statement in STATEMENTS}


def test_a_condition_has_its_counter_example() -> None:
    verdicts: dict[str, set[str]] = {}
    for lesson in LESSONS:
        for spec in claim_syntax.parse(lesson.path.read_text()):
            if spec.condition:
                assert spec.id is not None
                verdicts.setdefault(spec.id, set()).add(spec.expected)
    assert verdicts == {id_: {"holds", "refuted"} for id_ in CONDITIONS} | {id_: {"holds"} for id_ in MAY}


@each_lesson
def test_is_a_short_script_of_its_own(lesson: Lesson) -> None:
    text = lesson.path.read_text()
    tree = ast.parse(text)
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert imported - sys.stdlib_module_names == {"torch"}
    assert 15 <= len(text.splitlines()) <= 50
    assert max(map(len, text.splitlines())) <= 120
    assert lesson.title
    assert lesson.teaches
    assert "Article" not in lesson.teaches


def test_every_script_is_a_lesson() -> None:
    assert {lesson.path for lesson in LESSONS} == set(LESSONS[0].path.parent.glob("*.py"))
    for article in {lesson.article for lesson in LESSONS}:
        parts = [lesson.part for lesson in LESSONS if lesson.article == article]
        assert parts == list(range(1, len(parts) + 1))
    assert {lesson.article for lesson in LESSONS} == {statement.article for statement in STATEMENTS}
