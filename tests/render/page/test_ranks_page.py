"""The page of several ranks: groups of ranks that did alike, calls by line, and a page for each rank to choose."""

from __future__ import annotations

import json
import re
from typing import Any

from support.rank_traces import as_rank, failing, ranks, report_of
from support.traces import written_alias

from tensorlens.records.model import Trace
from tensorlens.render import RenderOptions
from tensorlens.render.page.ranks_page import MOST_PAGES, ranks_data, ranks_to_html

MOST_BESIDE_DATA = 100_000  # bytes


def data_of(traces: list[Trace]) -> dict[str, Any]:
    return ranks_data(report_of(traces), RenderOptions())


def test_ranks_that_did_alike_share_a_column_and_lines_that_differ_are_marked() -> None:
    data = data_of(ranks(12, odd=11))
    assert [group["text"] for group in data["groups"]] == ["ranks 0-10", "rank 11"]
    assert [page["rank"] for page in data["pages"]] == [0, 11]
    differing = [line for line in data["lines"] if line["differs"]]
    assert [(line["text"], line["calls"]) for line in differing] == [("loss = loss.exp()", [0, 1])]
    assert "ranks 1 to 10 made as many calls at each line" in data["pages"][0]["head"]["remarks"][-1]


def test_few_ranks_can_all_be_chosen() -> None:
    data = data_of(ranks(MOST_PAGES))
    assert [page["rank"] for page in data["pages"]] == list(range(MOST_PAGES))
    assert len(data["groups"]) == 1
    assert not any(line["differs"] for line in data["lines"])


def test_the_page_opens_at_the_rank_that_failed_first_with_its_finding() -> None:
    data = data_of(failing(3))
    assert data["pages"][data["start"]]["rank"] == 2
    assert [page["findings"] != [] for page in data["pages"]] == [False, False, True]
    ((code, severity, _, where, page),) = data["findings"]
    assert (code, severity, where, page) == ("error[saved-tensor-modified-inplace]", "error", "on rank 2", 2)
    assert data["groups"][-1]["failed"]


def test_the_page_is_small_beside_its_data() -> None:
    text = ranks_to_html(report_of(failing(6)), RenderOptions())
    data = text[text.index('type="text/plain">') : text.rindex("<script>")]
    assert len(text.encode()) - len(data) < MOST_BESIDE_DATA
    assert "rank 5 failed first" in text


def test_what_a_program_wrote_is_safe_to_show() -> None:
    source = "a = f()  # \u202e \x1b[31m\nout = a.sin()\nc = out.detach()\nc.zero_()\nout.sum()\n"
    trace = written_alias(source, message="\u202e \u200b").trace
    traces = [as_rank(trace, number, 2) for number in range(2)]
    text = json.dumps(data_of(traces), ensure_ascii=False)
    assert "u202e" in text
    assert not re.search("[\x00-\x1f\u200b-\u200f\u2028-\u202e]", text)
