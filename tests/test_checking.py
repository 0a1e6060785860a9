"""From the claims of a run to the verdict on a statement, and to a report of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from tensorlens import checking
from tensorlens.checking import Checked, check_documented, summed_up
from tensorlens.errors import TensorLensError, UsageError
from tensorlens.lessons import find, lessons
from tensorlens.render.claims import render_claims
from tensorlens.render.options import RenderOptions
from tensorlens.source import width
from tensorlens.statements import Statement
from tensorlens.verdicts import Claim

STATEMENT = Statement("900-1", "900", "`a|b` is [x]_y_ <z>", "one *part* of it")

Reached = Literal["holds", "refuted", "not reached"]


def claim(verdict: Reached, expected: Literal["holds", "refuted"], condition: str = "", **more: object) -> Claim:
    return replace(Claim("900-1", "x == 1", 7, expected, verdict, condition, (("x", "1"),)), **more)  # type: ignore[arg-type]


def summed(*given: Claim) -> Checked:
    return summed_up([STATEMENT], [("some-lesson", given)], "9.9")


HOLDS, REFUTED = claim("holds", "holds"), claim("refuted", "refuted")
IF, IF_NOT = claim("holds", "holds", "it rains"), claim("refuted", "refuted", "it is dry")


@pytest.mark.parametrize(
    ("given", "verdict", "condition", "as_recorded"),
    [
        ([HOLDS, HOLDS], "holds", "", True),
        ([REFUTED], "refuted", "", True),
        ([IF, IF_NOT, IF], "holds only if", "it rains", True),
        ([IF, claim("holds", "refuted", "it is dry")], "holds", "", False),
        ([claim("refuted", "holds", "it rains"), IF_NOT], "refuted", "", False),
        ([HOLDS, claim("refuted", "holds")], "refuted", "", False),
        ([claim("holds", "refuted")], "holds", "", False),
        ([HOLDS, claim("not reached", "holds")], "holds", "", False),
        ([claim("not reached", "holds")], "not reached", "", False),
        ([], "not reached", "", False),
    ],
)
def test_verdict_of_several_claims(given: list[Claim], verdict: str, condition: str, as_recorded: bool) -> None:
    checked = summed(*given)
    (finding,) = checked.findings
    assert (finding.verdict, finding.condition) == (verdict, condition)
    assert finding.as_recorded is checked.as_recorded is as_recorded


def test_a_claim_without_an_id_counts_only_if_it_fails() -> None:
    assert summed(HOLDS, replace(HOLDS, id=None)).as_recorded
    checked = summed(HOLDS, claim("refuted", "holds", id=None, line=9))
    assert not checked.as_recorded
    assert [evidence.line for evidence in checked.problems] == [9]
    assert "not as recorded: some-lesson:9 refuted: x == 1" in render_claims(checked)


SEVERAL = summed(IF, claim("refuted", "holds", "it is dry", values=(("x", "é" * 300),), error="ValueError: no"))


@pytest.mark.parametrize("size", [60, 80, 120, 200])
def test_table_keeps_to_its_width(size: int) -> None:
    text = render_claims(SEVERAL, "table", RenderOptions(width=size))
    assert max(map(width, text.splitlines())) <= size
    assert "holds only if it rains" in " ".join(text.split())
    assert "NOT AS RECORDED" in " ".join(text.split())
    assert "recorded: holds" in " ".join(text.split())
    assert "\x1b" not in text


def test_colour_adds_nothing_but_colour() -> None:
    import re

    text = render_claims(SEVERAL, "table", RenderOptions(color=True))
    assert "\x1b[" in text
    assert re.sub(r"\x1b\[[\d;]*m", "", text) == render_claims(SEVERAL, "table", RenderOptions())


def test_markdown_keeps_data_out_of_the_markup() -> None:
    text = render_claims(SEVERAL, "markdown")
    row = next(line for line in text.splitlines() if line.startswith("| 900-1"))
    assert row.startswith(
        r"| 900-1 | `a\|b` is \[x\]\_y\_ \<z\><br>measured: one \*part\* of it | holds only if it rains"
    )
    assert "**not as recorded**" in row
    assert "(recorded: holds)" in row


def test_json() -> None:
    made = json.loads(render_claims(SEVERAL, "json"))
    assert (made["format"], made["version"], made["torch"], made["as_recorded"]) == (
        "tensorlens.claims",
        1,
        "9.9",
        False,
    )
    (statement,) = made["statements"]
    assert (statement["verdict"], statement["condition"]) == ("holds only if", "it rains")
    assert statement["evidence"][0] == {
        "lesson": "some-lesson",
        "line": 7,
        "check": "x == 1",
        "verdict": "holds",
        "recorded": "holds",
        "condition": "it rains",
        "values": [{"expression": "x", "value": "1"}],
        "error": "",
    }


def test_no_such_form() -> None:
    with pytest.raises(UsageError, match="no such format: xml"):
        render_claims(SEVERAL, "xml")


def test_an_article_is_checked_by_running_its_lessons(capfd: pytest.CaptureFixture[str]) -> None:
    checked = check_documented("003")
    assert checked.as_recorded
    assert [finding.statement.id for finding in checked.findings] == [f"003-{number}" for number in range(1, 6)]
    assert {evidence.lesson for finding in checked.findings for evidence in finding.evidence} == {
        "detach-shares",
        "data-attribute",
    }
    assert capfd.readouterr() == ("", "")


def test_lessons_that_cannot_be_run_are_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_BOOTSTRAP", "raise ModuleNotFoundError('No module named torch')")
    with pytest.raises(TensorLensError) as caught:
        check_documented("003")
    assert str(caught.value) == "the lessons could not be run: ModuleNotFoundError: No module named torch"


def test_no_such_article() -> None:
    with pytest.raises(UsageError, match=r"^no article '7'; there are 000, 001, 002, 003, 004$"):
        check_documented("7")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("detatch", "no lesson named 'detatch'; did you mean 'detach'?"),
        ("clone_wrte", "no lesson named 'clone_wrte'; did you mean 'clone-write'?"),
        ("quantum", "no lesson named 'quantum'; tensorlens list shows them all"),
        ("nowhere/own.py", "no such file: nowhere/own.py"),
        ("own.py", "no such file: own.py"),
    ],
)
def test_a_name_that_is_no_lesson(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        find(name)
    assert str(caught.value) == message


def test_lessons_are_found_by_name_and_users_scripts_by_path(tmp_path: Path) -> None:
    for lesson in lessons():
        assert find(lesson.name) == find(lesson.path.stem) == lesson.path
    own = tmp_path / "own.py"
    own.touch()
    assert find(str(own)) == own
