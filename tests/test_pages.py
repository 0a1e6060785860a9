"""The manual pages, held to what they say: each failing example is found, on the marked lines; each cure runs clean."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from warm import Warm

from tensorlens import messages
from tensorlens.diagnostics import diagnose, pages
from tensorlens.errors import UsageError
from tensorlens.messages import classify
from tensorlens.model import Notice, Trace

CODES = pages.codes_with_page()
ROLES = frozenset(
    """accumulated_here base_made_here called_here cleared_here flag_changed_here freed_here function_defined_here
    grad_mode_off_here graph_built_here graph_cut_here hook_registered_here leaf_made_here mode_entered_here
    modified_here needed_here nonleaf_made_here observed_here optimizer_made_here rejected_here replaced_here
    returned_here saved_here shared_here state_changed_here value_made_here view_made_here""".split()
)


def fence(code: str, heading: str) -> str:
    """The one runnable example below a heading of a page."""
    text = pages.page(code)
    assert text is not None
    below = re.findall(rf"^## {heading}\n\n```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(below) == 1, f"{code} has {len(below)} examples below {heading}"
    return str(below[0])


def marked(example: str) -> dict[str, set[int]]:
    """Role -> the lines whose trailing comment names it."""
    lines: dict[str, set[int]] = {}
    for number, line in enumerate(example.splitlines(), 1):
        comment = line.rpartition("  # ")[2] if "  # " in line else ""
        for role in re.findall(r"\b\w+_here\b", comment):
            lines.setdefault(role, set()).add(number)
    return lines


def has_finder(code: str) -> bool:
    return hasattr(importlib.import_module(f"tensorlens.diagnostics.{code.replace('-', '_')}"), "find")


def told_by_torch(trace: Trace) -> set[str]:
    """The codes of all that PyTorch said in a run."""
    notices = [event.message for event in trace.events if isinstance(event, Notice)]
    return {failure.kind for failure in trace.failures} | {classify(message) for message in notices}


def lines_told(trace: Trace, code: str) -> set[int]:
    """The lines of the script at which PyTorch said it."""
    sites = [failure.site for failure in trace.failures if failure.kind == code]
    sites += [event.site for event in trace.events if isinstance(event, Notice) and classify(event.message) == code]
    return {trace.sites[site].span.line for site in sites if site is not None}


def written(folder: Path, text: str) -> Path:
    script = folder / "example.py"
    script.write_text(text, encoding="utf-8")
    return script


@pytest.mark.parametrize("code", CODES)
def test_form(code: str) -> None:
    text = pages.page(code)
    assert text is not None
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["Fails", "Fixed"]
    assert pages.first_sentence(text).endswith(".")
    roles = marked(fence(code, "Fails"))
    assert roles
    assert roles.keys() <= ROLES
    assert not marked(fence(code, "Fixed"))
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("code", CODES)
def test_failing_example(code: str, warm: Warm, tmp_path: Path) -> None:
    example = fence(code, "Fails")
    ran, trace = warm.traced(written(tmp_path, example))
    entry = messages.entry(code)
    assert entry is not None
    if entry.kind == "silent":
        assert ran.returncode == 0, ran.stderr
    else:
        assert code in told_by_torch(trace) | set(messages.find(ran.stderr)), ran.stderr
        assert lines_told(trace, code) & set[int]().union(*marked(example).values())
    if not has_finder(code):
        return
    found = [finding for finding in diagnose(trace) if finding.severity != "note"]
    if not found:  # a failure that the example catches is a note
        found = list(diagnose(trace))
    if not found and entry.kind == "silent":  # some show in a second run only
        found = list(diagnose(warm.compared(tmp_path / "example.py")[1]))
    assert [finding.code for finding in found] == [code]
    lines: dict[str, set[int]] = {}
    for label in found[0].labels:
        lines.setdefault(label.role, set()).add(label.span.line)
    expected = marked(example)
    if entry.kind == "silent":
        expected.pop("observed_here", None)  # for the reader: nothing happens there
    assert expected.keys() <= lines.keys()
    assert lines == {role: expected.get(role) for role in lines}


@pytest.mark.parametrize("code", CODES)
def test_fixed_example(code: str, warm: Warm, tmp_path: Path) -> None:
    ran, trace = warm.traced(written(tmp_path, fence(code, "Fixed")))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [finding.code for finding in diagnose(trace) if finding.severity != "note"] == []


def test_every_day_is_covered() -> None:
    missing = [entry.code for entry in messages.entries() if entry.tier == 1 and entry.code not in CODES]
    assert missing == []


def test_every_finding_is_in_the_index() -> None:
    index = pages.index().splitlines()
    listed = [line.split()[1] for line in index if line.startswith(("  error ", "  warning ", "  silent "))]
    assert sorted(listed) == sorted(entry.code for entry in messages.entries())


def test_page_of_a_code() -> None:
    page = pages.page_for("leaf-modified-inplace")
    assert page.startswith("leaf-modified-inplace (error, RuntimeError)\n")
    assert "## Fails" in page
    assert pages.page_for("error[leaf_modified_inplace]:") == page


@pytest.mark.parametrize(
    "before", ["", "RuntimeError: ", 'Traceback (most recent call last):\n  File "a.py", line 3\nE: ']
)
def test_page_of_a_message(before: str) -> None:
    message = "a leaf Variable that requires grad is being used in an in-place operation."
    assert pages.page_for(before + message) == pages.page_for("leaf-modified-inplace")


def test_a_code_without_a_page_says_what_is_known() -> None:
    bare = next(entry for entry in messages.entries() if entry.code not in CODES and entry.patterns)
    page = pages.page_for(bare.code)
    assert "No page is written" in page
    assert bare.patterns[0] in page


def test_a_message_with_several_pages_shows_the_specific_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = ["leaf-modified-inplace", "nonleaf-grad-access"]
    monkeypatch.setattr(messages, "find", lambda text: codes)
    page = pages.page_for("something that both say")
    assert page.index("leaf-modified-inplace (") < page.index("nonleaf-grad-access (")


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("leaf-modified", "did you mean leaf-modified-inplace"),
        ("qqqqqq", "tensorlens errors lists the codes"),
        ("what has\ngone wrong", "no page for this message: what has gone wrong"),
    ],
)
def test_unknown_is_one_line(wanted: str, answer: str) -> None:
    with pytest.raises(UsageError, match=re.escape(answer)) as error:
        pages.page_for(wanted)
    assert "\n" not in str(error.value)
