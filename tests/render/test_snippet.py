"""Checks labelled source, with one label and with many."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tensorlens.records.model import Script, Span, Trace, Versions
from tensorlens.records.report import Diagnostic, Edit, Fix, Label
from tensorlens.render.report.findings import Finding
from tensorlens.render.report.snippet import snippet
from tensorlens.render.tables import printed
from tensorlens.render.theme import console


def trace(**files: str) -> Trace:
    """A trace of nothing but sources: `demo="..."` is `/home/ada/demo.py`."""
    sources = {f"/home/ada/{name}.py": text for name, text in files.items()}
    script = Script("demo.py", (), "/home/ada", "ok", 0, None)
    return Trace(Versions("", "", ""), script, sources, (), (), (), ())


def label(line: int, column: int, end: int, text: str, *, end_line: int = 0, file: str = "demo") -> Label:
    return Label("needed_here", Span(f"/home/ada/{file}.py", line, column, end_line or line, end), text)


def shown(labels: list[Label], width: int = 80, **files: str) -> str:
    return of_files(labels, files, width)


def of_files(labels: list[Label], files: dict[str, str], width: int = 80) -> str:
    lines = snippet(labels, trace(**files), "primary", console(width, color=False), width)
    return "".join(line.plain.rstrip() + "\n" for line in lines)


def test_labels_of_one_line_hang_from_it() -> None:
    labels = [label(1, 0, 1, "changed here"), label(1, 4, 5, "saved here"), label(1, 8, 9, "read here")]
    assert shown(labels, demo="a = b * c\n") == (
        " --> demo.py:1:1\n1 | a = b * c\n  | ^   -   - read here\n  | |   |\n  | |   saved here\n  | changed here\n"
    )


def test_lines_between_labels_are_shown_or_left_out() -> None:
    source = "".join(f"x{n} = {n}\n" for n in range(1, 13))
    labels = [label(12, 0, 3, "here"), label(1, 0, 2, "first"), label(3, 0, 2, "third")]
    assert shown(labels, demo=source) == (
        "  --> demo.py:12:1\n"
        " 1 | x1 = 1\n"
        "   | -- first\n"
        " 2 | x2 = 2\n"
        " 3 | x3 = 3\n"
        "   | -- third\n"
        "...\n"
        "12 | x12 = 12\n"
        "   | ^^^ here\n"
    )


def test_a_label_over_many_lines_is_bracketed() -> None:
    source = "loss = step(\n    a,\n    b,\n    c,\n    d,\n)\n"
    assert shown([label(1, 7, 1, "it fails in here", end_line=6)], demo=source) == (
        " --> demo.py:1:8\n"
        "1 |   loss = step(\n"
        "  |  ________^\n"
        "2 | |     a,\n"
        "... |\n"
        "5 | |     d,\n"
        "6 | | )\n"
        "  | |_^ it fails in here\n"
    )


def test_other_files_follow_with_their_names() -> None:
    labels = [label(1, 0, 4, "fails"), label(2, 4, 10, "detached here", file="lib/net")]
    text = of_files(labels, {"demo": "loss.backward()\n", "lib/net": "def f(x):\n    return x.detach()\n"})
    assert text.splitlines()[3:5] == [" ::: lib/net.py:2:5", "2 |     return x.detach()"]


def test_a_file_without_source_still_says_what_happened() -> None:
    text = shown([label(7, 0, 4, "changed here")], other="")
    assert "line 7: changed here" in text


def test_a_long_line_is_cut_round_its_label() -> None:
    source = "x = " + " + ".join(f"term{n}" for n in range(60)) + "\n"
    column = source.index("term40")
    lines = shown([label(1, column, column + 6, "this one")], demo=source).splitlines()
    code, marks = lines[1], lines[2]
    assert code.startswith("1 | …")
    assert code.endswith("…")
    assert len(code) <= 80
    assert code[marks.index("^") : marks.rindex("^") + 1] == "term40"


def test_a_text_without_room_beside_its_mark_goes_below() -> None:
    source = " " * 50 + "value\n"
    text = "a text that is much too long to stand beside what it is about"
    lines = shown([label(1, 50, 55, text)], demo=source, width=70).splitlines()
    assert lines[2].strip() == "|" + " " * 51 + "^^^^^"
    assert " ".join(" ".join(line.strip("| ") for line in lines[3:]).split()) == text


def test_tabs_and_wide_characters_keep_marks_below_what_they_mark() -> None:
    lines = shown([label(1, 4, 5, "here")], demo="\t数 =x\n").splitlines()
    assert lines[1:] == ["1 |     数 =x", "  |         ^ here"]


def test_a_fix_is_shown_as_lines_before_and_after() -> None:
    span = Span("/home/ada/demo.py", 1, 4, 1, 14)
    fix = Fix("change a copy", (Edit(span, "out.detach().clone()"),))
    diagnostic = Diagnostic("code", "error", "title", "", (label(1, 0, 1, "here"),), (), (fix,))
    text = printed([Finding(diagnostic, trace(demo="c = out.detach\n"))], 80, color=False)
    assert text.endswith("  = help: change a copy\n1 - c = out.detach\n1 + c = out.detach().clone()\n")


LINES = st.lists(st.text(st.sampled_from("ab =(\t数é🙂\x1b\u202e"), max_size=150), min_size=1, max_size=40)
PLACES = st.tuples(*[st.integers(-3, 60)] * 4)
TEXTS = st.sampled_from(
    ["", "short", "a longer text that says in full what `happened` just here", "数据在这里改变" * 4]
)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from([60, 80, 120, 200]), LINES, st.lists(st.tuples(PLACES, TEXTS), min_size=1, max_size=6))
def test_any_labels_fit_the_width_and_lose_no_text(
    width: int, lines: list[str], places: list[tuple[tuple[int, ...], str]]
) -> None:
    labels = [label(a, b, d, text, end_line=c) for (a, b, c, d), text in places]
    drawn = snippet(labels, trace(demo="\n".join(lines)), "primary", console(width, color=False), width)
    assert max(cell_len(line.plain) for line in drawn) <= width
    together = "".join("".join(line.plain.split()) for line in drawn)
    assert all("".join(text.split())[:8] in together for _, text in places)


def test_a_mark_behind_a_line_that_fills_the_width_is_within_it() -> None:
    text = shown([label(1, 56, 56, "")], 60, demo="x" * 56)
    assert max(map(len, text.splitlines())) == 60
    assert text.splitlines()[-1].endswith("^")
