"""Checks the tables that every command draws."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from tensorlens.render.tables import Cell, HouseTable, folded, hanging, printed


def drawn(table: HouseTable, width: int) -> str:
    return printed([table], width, color=False)


def test_words_stay_whole_where_there_is_room_for_them() -> None:
    table = HouseTable(["name", "requires\ngrad", "grad_fn"], ["name"])
    table.add("running_mean", "no", "")
    table.add("trainer.encoder.to_logvar.weight", "yes", "BinaryCrossEntropyWithLogitsBackward0")
    assert drawn(table, 60) == (
        "                          requires\n"
        "name                      grad      grad_fn\n"
        "────────────────────────────────────────────────────────────\n"
        "running_mean              no\n"
        "trainer.encoder.          yes       BinaryCrossEntropyWith\n"
        "to_logvar.weight                    LogitsBackward0\n"
    )


def test_an_arrow_stays_with_what_it_joins() -> None:
    lines = [line.plain for line in folded(Text("changed in place, v0 -> v1; out changes too"), 22)]
    assert lines == ["changed in place,", "v0 -> v1; out changes", "too"]


def test_later_lines_hang() -> None:
    assert printed([hanging("  = why: ", "one two three four")], 18, color=False) == (
        "  = why: one two\n         three\n         four\n"
    )
    assert [line.plain for line in folded(Text("one two three"), 9, hang=2)] == ["one two", "  three"]


def test_an_empty_column_is_left_out_only_if_it_is_optional() -> None:
    table = HouseTable(["name", "with", "leaf"], optional=[1])
    table.add("a", "", "")
    assert drawn(table, 80).splitlines()[0] == "name  leaf"


def test_hostile_text_is_shown() -> None:
    table = HouseTable(["[bold]x[/]"])
    table.add("[red]\x1b[2J\u202e :smile: a\tb")
    assert drawn(table, 80).splitlines()[-1] == r"[red]\x1b[2J\u202e :smile: a    b"


TEXT = st.text(st.sampled_from("ab._(B ->数é🙂\n"), max_size=60)


@settings(deadline=None, max_examples=200)
@given(st.integers(40, 140), st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=4))
def test_no_table_is_too_wide_and_none_loses_text(width: int, rows: list[tuple[str, str, str]]) -> None:
    table = HouseTable(["name", "requires\ngrad", "grad_fn"])
    for row in rows:
        table.add(*row)
    text = drawn(table, width)
    assert max(map(cell_len, text.splitlines())) <= width
    shown = sorted("".join(text.split("─")[-1].split()))
    assert shown == sorted("".join("".join(cell.split()) for row in rows for cell in row))


@settings(deadline=None, max_examples=200)
@given(TEXT, st.integers(4, 60), st.integers(0, 8))
def test_folding_keeps_every_character(text: str, room: int, hang: int) -> None:
    lines = [line.plain for part in text.split("\n") for line in folded(Text(part), room, hang)]
    assert max(map(cell_len, lines)) <= room
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_cell_measures_its_longest_word() -> None:
    table = HouseTable(["", ""])
    table.add(Cell("one\ntwo words"), "abc " * 30)
    assert drawn(table, 40).splitlines()[0].startswith("one")
