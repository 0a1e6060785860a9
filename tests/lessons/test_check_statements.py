"""From the claims of a run to the verdict on a statement, and to a report of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from tensorlens.errors import TensorLensError, UsageError
from tensorlens.lessons import check_statements
from tensorlens.lessons.article_statements import Statement
from tensorlens.lessons.bundled import find, lessons
from tensorlens.lessons.check_statements import Checked, check_documented, summed_up
from tensorlens.lessons.lesson_texts import between_lessons, claims_of_all
from tensorlens.lessons.statement_report import render_claims
from tensorlens.records.claim import Claim, condition_text
from tensorlens.records.source import width
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.claim_texts import failed_claims
from tensorlens.render.report.terminal import claim_list
from tensorlens.render.tables import printed

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


MAY = replace(STATEMENT, text="it may rain")


@pytest.mark.parametrize(
    ("given", "verdict", "condition"),
    [
        ([IF], "holds", "it rains"),
        ([IF, IF_NOT], "holds", "it rains"),
        ([REFUTED, HOLDS], "holds", ""),
        ([REFUTED], "refuted", ""),
    ],
)
def test_what_may_happen_is_not_refuted_by_a_run_without_it(given: list[Claim], verdict: str, condition: str) -> None:
    checked = summed_up([MAY], [("some-lesson", given)], "9.9")
    assert (checked.findings[0].verdict, checked.findings[0].condition) == (verdict, condition)
    if condition:
        assert "it does when it rains" in render_claims(checked)
        assert "holds; it does when it rains" in render_claims(checked, "markdown")


def test_a_check_that_changes_the_lesson_is_not_as_recorded() -> None:
    checked = summed(claim("holds", "holds", changed="sets a.grad"))
    assert not checked.as_recorded
    assert "the check itself sets a.grad" in " ".join(render_claims(checked, "markdown").split())


def test_conditions_read_the_right_way_round() -> None:
    assert condition_text("holds", "it rains") == "only if it rains"
    assert condition_text("refuted", "it is dry") == "false when it is dry"
    assert condition_text("holds", "it rains", "it may rain") == "it does when it rains"
    assert condition_text("holds", "") == ""


def told_of(*claims: Claim) -> list[str]:
    lines = printed([claim_list(claims, RenderOptions())], 100, False).splitlines()
    return [" ".join(line.split()) for line in lines if not line.startswith("─")]


def test_a_report_lists_the_claims_that_are_more_than_true() -> None:
    plain = claim("holds", "holds", id=None)
    assert told_of(plain, IF_NOT, plain) == [
        "claims 3 of 3 as recorded",
        "verdict line claim",
        "refuted 7 x == 1",
        "900-1",
        "false when it is dry",
        "seen: x = 1",
        "2 more hold",
    ]
    assert told_of(plain, plain) == ["claims 2 of 2 as recorded", "all hold"]
    assert told_of() == ["claims none: the script has no `#:` lines"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (claim("refuted", "holds", values=(("x", "2"),)), "expected true, got false: x = 2"),
        (claim("refuted", "holds", round=3), "expected true, got false in round 3: x = 1"),
        (claim("holds", "refuted"), "expected false, got true: x = 1"),
        (claim("not reached", "holds", values=()), "its line was not reached"),
        (claim("not reached", "refuted", error="KeyError: 'k'"), "expected false, the check raised KeyError: 'k'"),
        (
            claim("holds", "holds", changed="sets a.grad"),
            "the check itself sets a.grad; make it a statement, and check its result",
        ),
        (
            claim("refuted", "holds", check="raises KeyError: k", values=(("raised", "nothing"),)),
            "expected KeyError: k, got no exception",
        ),
        (
            claim("refuted", "holds", check="raises KeyError", values=(("ValueError", "no"),)),
            "expected KeyError, got ValueError: no",
        ),
        (
            claim("holds", "refuted", check="raises KeyError", values=(("KeyError", "k"),)),
            "expected no KeyError, got KeyError: k",
        ),
    ],
)
def test_of_a_false_claim_is_said_what_was_expected_and_what_came(given: Claim, said: str) -> None:
    assert told_of(given)[-1] == said


def test_false_claims_are_counted_with_their_lines() -> None:
    false, missed = claim("refuted", "holds", line=5), claim("not reached", "holds", line=9)
    assert failed_claims([HOLDS, false, replace(false, line=8)]) == "2 of 3 claims are false: lines 5, 8"
    assert failed_claims([false]) == "1 of 1 claim is false: line 5"
    assert failed_claims([HOLDS, false, missed]) == "1 of 3 claims is false: line 5; 1 was not reached: line 9"
    assert failed_claims([HOLDS, missed]) == "1 of 2 claims was not reached: line 9"
    assert failed_claims([HOLDS, REFUTED]) == ""


def test_all_claims_of_several_lessons_are_counted() -> None:
    both = claims_of_all([("a.py", [HOLDS]), ("b.py", [HOLDS, IF])], RenderOptions())
    assert both.splitlines()[-1] == "2 lessons, 3 claims, all as recorded"
    assert re.search(r"^a\.py +1  as recorded\nb\.py +2  as recorded$", both, re.MULTILINE)
    false = claim("refuted", "holds")
    text = claims_of_all([("[bold]\x1b.py", [false, HOLDS])], RenderOptions())
    assert re.search(r"^\[bold\]\\x1b\.py +2  NOT AS RECORDED: line 7$", text, re.MULTILINE)
    assert text.splitlines()[-1] == "1 lesson, 2 claims, 1 NOT AS RECORDED"


def test_lessons_are_separated_by_a_line_with_their_names() -> None:
    first, second = (between_lessons(n, 2, "[bold]\x1b中文.py", RenderOptions(width=60)) for n in (1, 2))
    assert first.startswith(r"1 of 2: [bold]\x1b中文.py ──")
    assert second == "\n" + first.replace("1 of", "2 of")
    assert width(first.rstrip("\n")) == 60


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


def test_data_in_a_table_is_shown_and_keeps_its_columns() -> None:
    evil = "[bold]中文字符[/] \x1b[31m \u202e " + "a_long_name" * 9
    given = claim("refuted", "refuted", check=evil, values=((evil, evil),))
    checked = summed_up([replace(STATEMENT, text=evil)], [(evil, [given])], "9.9")
    for color in (False, True):
        text = render_claims(checked, "table", RenderOptions(color=color))
        assert text.count("[bold]中文字符[/]") > 3
        assert "\x1b[31m" not in text
        assert "\u202e" not in text
    lines = render_claims(checked).splitlines()
    assert max(map(width, lines)) <= 80
    start = next(line for line in lines if line.startswith("id ")).index("statement")
    rows = lines[lines.index(next(line for line in lines if line.startswith("900-1"))) + 1 :]
    assert all(line.startswith(" " * start) for line in rows)


def test_colour_adds_nothing_but_colour() -> None:
    text = render_claims(SEVERAL, "table", RenderOptions(color=True))
    assert "\x1b[" in text
    bare = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert re.sub(r" +$", "", bare, flags=re.MULTILINE) == render_claims(SEVERAL, "table", RenderOptions())


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
        "changed": "",
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
    monkeypatch.setattr(check_statements, "_RUN_LESSONS", "raise ModuleNotFoundError('No module named torch')")
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
