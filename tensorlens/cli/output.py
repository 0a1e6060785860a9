"""Writes reports to standard output or to a file, in the form and width that were asked for, one rank at a time."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tensorlens.errors import UsageError
from tensorlens.paths import is_folder
from tensorlens.render import PAGE_FORMS, REPORT_FORMS

if TYPE_CHECKING:
    from tensorlens.cli.trailing_options import TrailingOptions
    from tensorlens.render import RenderOptions

MERGED_FORMS = dict(PAGE_FORMS)  # those that show all ranks of a distributed run
_PROSE = 100  # columns: wider text is hard to read
_SUFFIXES = {suffix: form for form, suffix in REPORT_FORMS.items() if suffix}


@dataclass(frozen=True, slots=True)
class Output:
    """The destination of a report: standard output in `format`, or the file `path` in the form of its suffix.

    `story` and `tensors` show the parts of a report in full that it would leave out. `forms` are those that the command
    can write.
    """

    format: str | None = None
    path: Path | None = None
    width: int | None = None
    story: bool = False
    tensors: bool = False
    forms: Mapping[str, str] = field(default_factory=lambda: REPORT_FORMS)

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in self.forms:
            raise UsageError(f"no such format: {self.format} (there are {', '.join(self.forms)})")
        suffixes = [suffix for suffix in self.forms.values() if suffix]
        if self.format is None and self.path is not None and self.path.suffix.lower() not in ("", *suffixes):
            known = ", ".join(suffixes)
            raise UsageError(
                f"can't write {self.path}: no form has this suffix (there are {known}); --format names one"
            )
        if self.path is not None and is_folder(self.path):
            raise UsageError(f"can't write {self.path}: it is a directory")
        if self.path is not None and not is_folder(self.path.parent):
            raise UsageError(f"can't write {self.path}: there is no folder {self.path.parent}")

    def joined_with(self, trailing: TrailingOptions) -> Output:
        """Returns the destination together with the options after the script."""
        return Output(
            trailing.format or self.format,
            trailing.output or self.path,
            trailing.width or self.width,
            trailing.story or trailing.everything or self.story,
            trailing.tensors or trailing.everything or self.tensors,
        )

    @property
    def form(self) -> str:
        """Returns the form to write: `format` if it is given, else the form of the file's suffix, else a table."""
        suffix = "" if self.path is None else self.path.suffix.lower()
        return self.format or _SUFFIXES.get(suffix, "table")

    @property
    def keeps_stdout(self) -> bool:
        """Returns whether standard output is reserved for the report."""
        return self.path is None and self.form != "table"

    def options(self, **more: Any) -> RenderOptions:
        from tensorlens.render import RenderOptions

        color = self.path is None and self.form == "table" and wants_color()
        return RenderOptions(
            width=self.width or _terminal_width(self.path),
            height=_terminal_height(self.path),
            color=color,
            story=self.story,
            tensors=self.tensors,
            findings_first=self.path is not None,
            **more,
        )

    def prose_options(self) -> RenderOptions:
        """Returns the options for prose, which is not as wide as a wide terminal."""
        options = self.options()
        return options if self.width else replace(options, width=min(options.width, _PROSE))

    def is_merged(self) -> bool:
        """Returns whether the ranks of a distributed run share one report or one file, in a form that shows several."""
        from tensorlens.runner.ranks import rank_in

        return rank_in(os.environ) is not None and self.form in MERGED_FORMS

    @property
    def saves_trace(self) -> bool:
        """Returns whether the trace itself is written, which `view` reads: `-o x.json` without a form."""
        return self.form == "json" and self.format is None and self.path is not None

    def of_rank(self) -> Output:
        """Returns the output of this process in a distributed run: each rank writes a file of its own."""
        from tensorlens.runner.ranks import own_file, rank_in

        rank = rank_in(os.environ)
        return self if rank is None or self.path is None else replace(self, path=own_file(self.path, rank))

    def of_run(self, *, has_all: bool) -> Output:
        """Returns the output of all ranks of a distributed run, or of those of this node if another one has others."""
        from tensorlens.runner.ranks import run_file

        return self if self.path is None else replace(self, path=run_file(self.path, has_all=has_all))

    def write(self, text: str) -> None:
        text = text if text.endswith("\n") else text + "\n"
        if self.path is None:
            with _one_at_a_time():
                print_out(text)
            return
        try:
            self.path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"can't write {self.path}: {error.strerror}") from None

    def write_copy(self, source: IO[bytes]) -> None:
        """Writes a copy of a whole file to the path."""
        from shutil import copyfileobj

        assert self.path is not None
        source.seek(0)
        try:
            with self.path.open("wb") as file:
                copyfileobj(source, file)
        except OSError as error:
            raise UsageError(f"can't write {self.path}: {error.strerror}") from None


_ASCII = str.maketrans("─…", "-.")  # the characters that our own tables and cuts are made of


def print_out(text: str) -> None:
    """Writes to standard output, which may be a full disk or a pipe without a reader, or know only ASCII."""
    try:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:
            encoding = sys.stdout.encoding
            sys.stdout.write(text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # drops the rest of the buffer
        if error.errno != errno.EPIPE:
            raise UsageError(f"can't write to standard output: {error.strerror}") from None


def wants_color() -> bool:
    """Returns whether standard output is to have colours."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Keeps other ranks from writing to the same output at the same time, if the output can be locked."""
    descriptor = -1
    if "RANK" in os.environ:
        import fcntl

        with suppress(OSError, ValueError):
            fcntl.lockf(sys.stdout.fileno(), fcntl.LOCK_EX)
            descriptor = sys.stdout.fileno()
    yield
    if descriptor >= 0:
        fcntl.lockf(descriptor, fcntl.LOCK_UN)


def _terminal_width(path: Path | None) -> int:
    return 100 if path is not None else _from_environment("COLUMNS") or _terminal_size().columns or 80


def _terminal_height(path: Path | None) -> int:
    return 50 if path is not None else _from_environment("LINES") or _terminal_size().lines or 50


def _from_environment(name: str) -> int:
    """Returns a size that the user set; 0 if there is none."""
    number = os.environ.get(name, "")
    return int(number) if number.isdecimal() and len(number) < 7 else 0


def _terminal_size() -> os.terminal_size:
    """Returns the size of the terminal that standard output is; zeros if it is none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return os.terminal_size((0, 0))
