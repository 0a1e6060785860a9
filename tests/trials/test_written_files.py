"""A fix is written to all of its files or to none, and changes nothing but what it edits."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tensorlens.records.edits import edited, edited_as_it_is, edits_between, unified_diff
from tensorlens.records.model import Span
from tensorlens.records.report import Edit
from tensorlens.records.source import lines_of
from tensorlens.records.source_encoding import decoded
from tensorlens.trials.written_files import NotWritten, ReadFiles

LATIN = "# coding: latin-1\r\nname = 'caf\xe9'\r\nx += 1\nprint(name)\r\n".encode("latin-1")


def trace(folder: Path, *files: Path) -> Any:
    sources = {str(file): decoded(file.read_bytes()) for file in files}
    return SimpleNamespace(sources=sources, script=SimpleNamespace(folder=str(folder)))


def change(file: Path, line: int, first: int, last: int, text: str) -> Edit:
    return Edit(Span(str(file), line, first, line, last), text)


def made(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_encoding_line_ends_and_mode_stay(tmp_path: Path) -> None:
    file = made(tmp_path / "program.py", LATIN)
    file.chmod(0o750)
    assert ReadFiles(trace(tmp_path, file)).write([change(file, 3, 0, 6, "x = x + 1\ny = x")]) == [str(file)]
    assert file.read_bytes() == LATIN.replace(b"x += 1\n", b"x = x + 1\ny = x\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert left_in(tmp_path) == ["program.py"]


def test_a_new_line_has_the_end_of_its_own_line(tmp_path: Path) -> None:
    file = made(tmp_path / "program.py", b"\xef\xbb\xbfa = 1\r\nb = 2\n")
    ReadFiles(trace(tmp_path, file)).write([change(file, 1, 0, 0, "c = 0\n"), change(file, 2, 4, 5, "3")])
    assert file.read_bytes() == b"\xef\xbb\xbfc = 0\r\na = 1\r\nb = 3\n"


def test_a_file_that_changed_since_the_run_is_refused(tmp_path: Path) -> None:
    file = made(tmp_path / "program.py", b"x += 1\n")
    files = ReadFiles(trace(tmp_path, file))
    file.write_bytes(b"x += 1  # new\n")
    with pytest.raises(NotWritten, match=r"^program\.py changed since the program started$"):
        files.write([change(file, 1, 0, 6, "x = x + 1")])
    assert file.read_bytes() == b"x += 1  # new\n"


def test_a_file_that_changed_while_the_program_ran_is_refused(tmp_path: Path) -> None:
    file = made(tmp_path / "program.py", b"x += 1\n")
    recorded = trace(tmp_path, file)
    file.write_bytes(b"x += 2\n")
    with pytest.raises(NotWritten, match="changed since the program started"):
        ReadFiles(recorded).write([change(file, 1, 0, 6, "x = x + 1")])


def test_a_file_outside_the_folder_is_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", made(tmp_path / "library.py", b"x += 1\n")
    inside.mkdir()
    link = inside / "link.py"
    link.symlink_to(outside)
    with pytest.raises(NotWritten, match=r"^link\.py is not in the folder of the program$"):
        ReadFiles(trace(inside, link)).write([change(link, 1, 0, 6, "x = x + 1")])
    assert outside.read_bytes() == b"x += 1\n"


def test_a_link_inside_the_folder_stays_a_link(tmp_path: Path) -> None:
    file = made(tmp_path / "program.py", b"x += 1\n")
    link = tmp_path / "link.py"
    link.symlink_to(file)
    ReadFiles(trace(tmp_path, link)).write([change(link, 1, 0, 6, "x = x + 1")])
    assert link.is_symlink()
    assert file.read_bytes() == b"x = x + 1\n"


def test_all_files_are_written_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = made(tmp_path / "one.py", b"a += 1\n"), made(tmp_path / "two.py", b"b += 1\n")
    files = ReadFiles(trace(tmp_path, one, two))
    put, done = Path.replace, []

    def replace(path: Path, target: Path) -> Path:
        done.append(target.name)
        if done == ["one.py", "two.py"]:
            raise OSError(28, "No space left on device", str(target))
        return put(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(NotWritten, match=r"^No space left on device: two\.py$"):
        files.write([change(one, 1, 2, 4, "="), change(two, 1, 2, 4, "=")])
    assert done == ["one.py", "two.py", "one.py"]  # the last one gives it its old content
    assert (one.read_bytes(), two.read_bytes()) == (b"a += 1\n", b"b += 1\n")
    assert left_in(tmp_path) == ["one.py", "two.py"]


def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = made(tmp_path / "one.py", b"a += 1\n"), made(tmp_path / "two.py", b"b += 1\n")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "two.py")
    with pytest.raises(NotWritten, match=r"^Permission denied: two\.py$"):
        ReadFiles(trace(tmp_path, one, two)).write([change(one, 1, 2, 4, "="), change(two, 1, 2, 4, "=")])
    assert one.read_bytes() == b"a += 1\n"
    assert left_in(tmp_path) == ["one.py", "two.py"]


def test_a_folder_that_takes_no_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without the right to write the folder can't replace a file in it, even a file of their own."""
    folder = tmp_path / "program"
    folder.mkdir()
    file = made(folder / "program.py", b"x += 1\n")

    def refuse(**options: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(folder / ".program.py.w3x_"))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(NotWritten, match=r"^Permission denied: program$"):
        ReadFiles(trace(tmp_path, file)).write([change(file, 1, 0, 6, "x = x + 1")])
    assert file.read_bytes() == b"x += 1\n"


def test_a_file_with_another_hard_link_is_refused(tmp_path: Path) -> None:
    file, other = made(tmp_path / "program.py", b"x += 1\n"), tmp_path / "other.py"
    other.hardlink_to(file)
    with pytest.raises(NotWritten, match=r"^program\.py has another hard link, which would keep the old text$"):
        ReadFiles(trace(tmp_path, file)).write([change(file, 1, 0, 6, "x = x + 1")])
    assert file.read_bytes() == other.read_bytes() == b"x += 1\n"
    assert file.samefile(other)


def test_a_long_file_name_is_no_obstacle(tmp_path: Path) -> None:
    file = made(tmp_path / ("p" * 252 + ".py"), b"x += 1\n")
    ReadFiles(trace(tmp_path, file)).write([change(file, 1, 0, 6, "x = x + 1")])
    assert (file.read_bytes(), left_in(tmp_path)) == (b"x = x + 1\n", [file.name])


@pytest.mark.parametrize(
    "text",
    [
        b"a = 1\n\x0cx += 1", b"a = 1\n\tx += 1", "a = '\x0b\x1c\x85'\r\nx += 1\r\n".encode(), b"a = 1\rx += 1\r",
        "a = '\u2028'\nx += 1".encode(), "\ufeffa = 1\nx += 1\n".encode(), b"#coding: latin-1\nx += 1 #\xe9\x0c\x85",
    ],
)  # fmt: skip
def test_all_other_bytes_stay(tmp_path: Path, text: bytes) -> None:
    file = made(tmp_path / "program.py", text)
    recorded = trace(tmp_path, file)
    column = next(line.index("x +=") for line in recorded.sources[str(file)].split("\n") if "x +=" in line)
    ReadFiles(recorded).write([change(file, 2, column + 2, column + 4, "=")])
    assert file.read_bytes() == text.replace(b"x += 1", b"x = 1")


def test_a_text_that_the_encoding_lacks_is_refused(tmp_path: Path) -> None:
    file = made(tmp_path / "program.py", LATIN)
    with pytest.raises(NotWritten, match="can't be edited"):
        ReadFiles(trace(tmp_path, file)).write([change(file, 3, 0, 6, "x = '\u4e2d'")])
    assert file.read_bytes() == LATIN


ENDS = st.sampled_from(["\n", "\r\n"])
LINES = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=6)


@st.composite
def texts_with_edits(draw: st.DrawFn, kinds: st.SearchStrategy[str]) -> tuple[str, list[Edit]]:
    lines = draw(st.lists(LINES, min_size=1, max_size=6))
    ends = draw(st.lists(kinds, min_size=len(lines) - 1, max_size=len(lines) - 1))
    text = "".join(line + end for line, end in zip(lines, [*ends, ""], strict=True))
    assume(len(lines_of(text)) == len(lines))
    edits = []
    for number in draw(st.sets(st.integers(1, len(lines)))):
        first = draw(st.integers(0, len(lines[number - 1])))
        last = draw(st.integers(first, len(lines[number - 1])))
        new = draw(st.text(st.sampled_from("ab\n"), min_size=1, max_size=4))
        edits.append(Edit(Span("program.py", number, first, number, last), new))
    return text, edits


@given(texts_with_edits(st.sampled_from(["\n", "\r\n", "\r"])))
def test_a_file_is_written_as_the_edited_text_or_not_at_all(given_: tuple[str, list[Edit]]) -> None:
    text, edits = given_
    with tempfile.TemporaryDirectory() as folder:
        file = made(Path(folder, "program.py"), text.encode())
        placed = [replace(edit, span=replace(edit.span, file=str(file))) for edit in edits]
        recorded = trace(Path(folder), file)
        expected = edited(recorded.sources[str(file)], placed)
        try:
            ReadFiles(recorded).write(placed)
        except NotWritten:
            assert file.read_bytes() == text.encode()
        else:
            assert decoded(file.read_bytes()) == expected


@given(texts_with_edits(ENDS))
def test_edits_leave_all_other_characters_and_line_ends(given_: tuple[str, list[Edit]]) -> None:
    text, edits = given_
    new = edited_as_it_is(text, edits)
    assert lines_of(new) == lines_of(edited(text, edits))
    edited_lines = {edit.span.line for edit in edits}
    untouched = [line for number, line in enumerate(_ended(text), 1) if number not in edited_lines]
    rest = iter(_ended(new))
    assert all(line in rest for line in untouched)  # in the same order


def _ended(text: str) -> list[str]:
    """The lines of a text, each with its line end."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)


@given(st.lists(LINES, min_size=1, max_size=8), st.lists(LINES, min_size=1, max_size=8))
def test_edits_between_two_texts_turn_one_into_the_other(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)
    edits = edits_between("program.py", before, after)
    assert edited(before, edits) == after


def test_a_diff_is_what_a_patch_program_reads() -> None:
    source = "a = 1\nb = 2\nc = 3"
    edits = [Edit(Span("/p/program.py", 3, 4, 3, 5), "4")]
    assert unified_diff({"/p/program.py": source}, edits, "/p") == (
        "--- program.py", "+++ program.py", "@@ -1,3 +1,3 @@", " a = 1", " b = 2",
        "-c = 3", "\\ No newline at end of file", "+c = 4", "\\ No newline at end of file",
    )  # fmt: skip
