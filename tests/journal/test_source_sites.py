"""Sites are kept as numbers, and made into records when a trace needs them."""

import pytest

from tensorlens.journal.rows import SiteRow, SourceRow
from tensorlens.journal.source_sites import SourceSites, _Lines
from tensorlens.records.model import Site, Span
from tensorlens.records.source import line_at

TEXT = "a = 1\r\nb = 'ä'; c = f(a)\r\x0cd = 2\n\n"


def row(site: int, line: int, columns: tuple[int, int], caller: int | None = None) -> SiteRow:
    return SiteRow(site, "a.py", "f", (line, line, *columns), ("c",), caller, "", False)


@pytest.mark.parametrize("text", ["", "\n", "one", TEXT, "a\n\nb\r\n"])
def test_lines_are_those_of_a_source(text: str) -> None:
    lines = _Lines(text)
    assert [lines.at(n) for n in range(-1, 9)] == [line_at(text, n) for n in range(-1, 9)]


def test_records_have_columns_in_characters_and_share_values() -> None:
    sites = SourceSites()
    sites.add_source(SourceRow("a.py", TEXT))
    sites.add_site(row(0, 2, (14, 18)))
    sites.add_site(row(1, 1, (4, 99), caller=0))
    first, second = sites.records()
    assert first == Site(0, Span("a.py", 2, 13, 2, 17), "f", None, ("c",), "")
    assert second == Site(1, Span("a.py", 1, 4, 1, 5), "f", 0, ("c",), "")
    assert first.targets is second.targets
    assert sites.records() is sites.records()


def test_a_site_is_replaced_and_a_new_source_counts_for_later_sites() -> None:
    sites = SourceSites()
    sites.add_site(row(0, 1, (2, 3)))
    assert sites.records()[0].span == Span("a.py", 1, 0, 1, 0)
    sites.add_source(SourceRow("a.py", TEXT))
    sites.add_site(row(0, 1, (2, 3)))
    assert len(sites) == 1
    assert sites.records()[0].span == Span("a.py", 1, 2, 1, 3)


@pytest.mark.parametrize("number", [-1, 1])
def test_a_site_with_another_number_than_the_next_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="no such number"):
        SourceSites().add_site(row(number, 1, (0, 1)))
