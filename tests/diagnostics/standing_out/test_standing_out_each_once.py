"""Checks that two sentences about the same lines differ in more than their numbers."""

from __future__ import annotations

from tensorlens.diagnostics.standing_out import _each_once
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut


def _said(*texts: str, line: int = 3) -> list[StandingOut]:
    span = Span("script.py", line, 0, line, 4)
    return [StandingOut(text, (Label("observed_here", span, "here"),)) for text in texts]


def test_sentences_that_differ_in_numbers_only_become_one() -> None:
    found = [each.text for each in _each_once(_said("`f(x)` has 78 of 1,200", "`f(x)` has 62 of 1,100", "`f(x)` ends"))]
    assert found == ["`f(x)` has 78 of 1,200 (and 1 more like it, with other numbers)", "`f(x)` ends"]


def test_equal_sentences_become_one() -> None:
    assert [each.text for each in _each_once(_said("a rate of 1e-05", "a rate of 1e-05"))] == ["a rate of 1e-05"]


def test_other_names_groups_and_lines_stay_apart() -> None:
    some = _said("`net[0].weight` is 3", "`net[1].weight` is 3", "the 1st group is 3", "the 2nd group is 3")
    assert list(_each_once([*some, *_said("the 2nd group is 3", line=4)])) == [
        *some,
        *_said("the 2nd group is 3", line=4),
    ]


def test_many_things_of_numbered_names_become_one_sentence() -> None:
    (found,) = _each_once(_said(*(f"`net[{place}].weight` is {place}" for place in range(12))))
    assert found.text == "`net[0].weight` is 0 (and 11 more like it, with other numbers)"
