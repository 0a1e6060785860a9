"""The report of many ranks stays short: ranges of ranks, the most ranks as "the others", a limit for each table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.rank_traces import as_rank, failing, ranks, report_of

from tensorlens.analysis.ranks.alike import groups_of, lines_of_ranks, remark_on_ends
from tensorlens.analysis.ranks.rank_texts import ranks_text, short_ranks
from tensorlens.records.merged_report import RankDifference
from tensorlens.render import RenderOptions
from tensorlens.render.report.merged_text import ending_rows, merged_text


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([3], "rank 3"),
        ([0, 1], "ranks 0 and 1"),
        ([2, 1, 0], "ranks 0 to 2"),
        ([0, 1, 2, 5], "ranks 0-2 and 5"),
        ([0, 1, 2, 5, 7, 8, 9], "ranks 0-2, 5 and 7-9"),
        (list(range(0, 256, 2)), "128 ranks (0, 2, 4, …, 254)"),
    ],
)
def test_ranks_are_named_as_ranges(numbers: list[int], text: str) -> None:
    assert ranks_text(numbers) == text


def test_a_cell_has_few_ranges() -> None:
    assert short_ranks(range(255)) == "0-254"
    assert short_ranks([*range(0, 20, 2), 30]) == "0, 2, 4, …, 30"


def test_the_ranks_that_did_alike_are_one_group() -> None:
    groups = groups_of(report_of(ranks(12, odd=5)))
    assert [(len(group.ranks), group.ranks[0]) for group in groups] == [(11, 0), (1, 5)]
    assert [line.calls for line in lines_of_ranks(groups) if line.differs] == [(0, 1)]
    assert len(groups_of(report_of(ranks(12)))) == 1


def test_the_most_ranks_are_the_others_if_their_list_is_long() -> None:
    odd = ranks(40, odd=0)[0]
    traces = [as_rank(odd, number, 40) if number % 9 == 4 else each for number, each in enumerate(ranks(40))]
    text = " ".join(merged_text(report_of(traces), "table", RenderOptions(width=120)).split())
    assert "loss = loss.exp() 1 on ranks 4, 13, 22 and 31, none on the other 36" in text


def test_differences_and_endings_are_limited() -> None:
    report = report_of(ranks(12))
    many = tuple(RankDifference("branch", f"sentence {number}", (0, 1)) for number in range(20))
    text = merged_text(replace(report, differences=many), "table", RenderOptions())
    assert "sentence 7" in text
    assert "sentence 8" not in text
    assert "and 12 more (all: --format json)" in text
    assert len(ending_rows(report)) == 1
    assert [row[0] for row in ending_rows(report_of(failing(4)))] == ["0-2", "3"]


def test_ranks_that_ended_long_after_each_other_may_be_of_two_runs() -> None:
    one, two = ranks(2)
    late = as_rank(two, 1, 2, ended=7201.0)
    assert remark_on_ends(report_of([one, two])) == ""
    assert remark_on_ends(report_of([one, late])).startswith("rank 1 ended 120 minutes after rank 0")
    sure = [as_rank(one, 0, 2, "a 0"), as_rank(two, 1, 2, "a 0", ended=7201.0)]
    assert remark_on_ends(report_of(sure)) == ""
