"""What the commands do, behind the parsing of `cli`: run, diagnose, render, write. Each returns an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorlens import __version__
from tensorlens.errors import TensorLensError, UsageError
from tensorlens.paths import is_folder
from tensorlens.render import RENDERERS

if TYPE_CHECKING:
    from tensorlens.model import Trace
    from tensorlens.render import RenderOptions
    from tensorlens.telling import Told

INTERRUPTED = 130
_PROSE = 100  # columns: wider text is hard to read
_SUFFIXES = {renderer.suffix: form for form, renderer in RENDERERS.items()}


@dataclass(frozen=True, slots=True)
class Output:
    """Where a report goes and how: `format` on standard output, or `path` by its suffix."""

    format: str = "table"
    path: Path | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        if self.format not in RENDERERS:
            raise UsageError(f"no such format: {self.format} (there are {', '.join(RENDERERS)})")
        if self.path is not None and is_folder(self.path):
            raise UsageError(f"can't write {self.path}: it is a directory")
        if self.path is not None and not is_folder(self.path.parent):
            raise UsageError(f"can't write {self.path}: there is no folder {self.path.parent}")

    @property
    def form(self) -> str:
        """The form of what is written: the one asked for, else the one that the file's suffix names."""
        named = self.format == "table" and self.path is not None
        return _SUFFIXES.get(self.path.suffix, self.format) if named and self.path else self.format

    @property
    def keeps_stdout(self) -> bool:
        """Whether standard output belongs to the report alone."""
        return self.path is None and self.format != "table"

    @property
    def prose_width(self) -> int:
        """The columns of running text."""
        return self.width or min(_terminal_width(self.path), _PROSE)

    def options(self, **more: Any) -> RenderOptions:
        from tensorlens.render import RenderOptions

        color = self.path is None and self.format == "table" and _wants_color()
        return RenderOptions(width=self.width or _terminal_width(self.path), color=color, **more)

    def write(self, text: str) -> None:
        text = text if text.endswith("\n") else text + "\n"
        if self.path is None:
            write_out(text)
            return
        try:
            self.path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"can't write {self.path}: {error.strerror}") from None


def write_out(text: str) -> None:
    """Write to standard output, which may be full, or a pipe whose reader has left."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the rest of its buffer goes nowhere
        if error.errno != errno.EPIPE:
            raise UsageError(f"can't write to standard output: {error.strerror}") from None


def _wants_color() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def _is_watched() -> bool:
    from tensorlens.live import can_show

    return sys.stdout.isatty() and can_show(sys.stderr.fileno())


def _terminal_width(path: Path | None) -> int:
    if path is not None:
        return 100
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def guarded(app: Callable[[], int]) -> int:
    """Run the command line; turn our own errors into one line, and a bug of ours into an honest one."""
    try:
        _open_streams()
        return app()
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 0 if leave.code is None else 1
    except TensorLensError as error:
        print(f"tensorlens: {shown(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        print(
            f"tensorlens: this is a bug in tensorlens, not in your script: {type(error).__name__}: {shown(str(error))} "
            "(set TENSORLENS_DEBUG=1 for the traceback, and please report it)",
            file=sys.stderr,
        )
        return 70


def shown(text: str) -> str:
    """A line that may hold what others wrote, with nothing in it that a terminal would obey."""
    from tensorlens.render.text import safe

    return safe(text)


def _open_streams() -> None:
    """Put the null device where a standard stream was closed (`>&-`): else a file of ours would take its number."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, number)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  (stays open)


def show_version() -> None:
    write_out(f"tensorlens {__version__}\n")


# --- run, explain, view ---------------------------------------------------------------------------------------------


def explain(
    module: str | None, arguments: Sequence[str], output: Output, timeout: float | None, reference: bool = False
) -> int:
    """`explain SCRIPT [ARGS…]`, `explain -m MODULE [ARGS…]`, `explain - [ARGS…]`."""
    from tensorlens import trailing
    from tensorlens.runner import RunOptions, Target, run_and_tell

    if module is None and not arguments:
        raise UsageError("explain what? Give a script, - for standard input, or -m and a module")
    tail = trailing.split(arguments if module is not None else arguments[1:])
    output = Output(tail.format or output.format, tail.output or output.path, tail.width or output.width)
    if module is not None:
        target = Target("module", module, tail.argv)
    elif arguments[0] == "-":
        target = Target("stdin", "-", tail.argv)
    else:
        _no_lesson(arguments[0])
        target = Target("file", arguments[0], tail.argv)
    options = RunOptions(
        timeout=tail.timeout or timeout,
        stdout_to_stderr=output.keeps_stdout,
        live=_is_watched(),
        reference=tail.reference or reference,
    )
    told = run_and_tell(target, options, partial(_teller, output))
    output.write(told.text)
    return told.exit_code


def _no_lesson(path: str) -> None:
    """Say how a lesson is run to somebody who wants a lesson explained."""
    from tensorlens.lessons import bundled

    if not os.path.exists(path) and bundled(path) is not None:
        raise UsageError(f"no such file: {path}; a lesson has this name: tensorlens run {path}")


def run_lessons(names: Sequence[str], everything: bool, output: Output, timeout: float | None) -> int:
    """`run NAME…`, `run PATH`, `run --all`: one report after the other, the worst exit code of all."""
    from tensorlens import lessons
    from tensorlens.runner import RunOptions, Target, run_and_tell

    wanted = [lesson.name for lesson in lessons.lessons()] if everything else list(names)
    if not wanted:
        raise UsageError("run what? Give the name of a lesson (tensorlens list shows them), a path, or --all")
    paths = [lessons.find(name) for name in wanted]
    if output.path is not None and len(paths) > 1:
        raise UsageError("-o takes one lesson at a time")
    options = RunOptions(timeout=timeout, claims=True, stdout_to_stderr=output.keeps_stdout, live=_is_watched())
    reports: list[str] = []
    worst = 0
    for path in paths:
        told = run_and_tell(Target("file", str(path)), options, partial(_teller, output, path.name))
        worst = max(worst, told.exit_code)
        if output.keeps_stdout and len(paths) > 1:
            reports.append(told.text)
        else:
            output.write(told.text)
    if reports:
        output.write(_joined(reports, output.format))
    return worst


def _joined(texts: list[str], format: str) -> str:
    """Several reports as one text: a JSON array, or documents one after the other."""
    if format == "json":
        return "[\n" + ",\n".join(text.strip() for text in texts) + "\n]\n"
    return "\n".join(texts)


def view(path: Path, output: Output) -> int:
    """`view TRACE.json`: the report of a saved trace."""
    from tensorlens.store import load
    from tensorlens.telling import teller

    told = teller(output)(load(path))
    output.write(told.text)
    return told.exit_code


def _teller(output: Output, lesson: str = "") -> Callable[[Trace], Told]:
    """Called once the program has been started, which takes longer than these imports."""
    from tensorlens.telling import teller

    return teller(output, lesson)


# --- claims and compare ---------------------------------------------------------------------------------------------


def check_statements(article: str | None, output: Output) -> int:
    """`claims [ARTICLE]`: run the lessons that carry the statements, and show what each comes to."""
    from tensorlens.checking import check_documented
    from tensorlens.render.claims import render_claims

    checked = check_documented(article)
    output.write(render_claims(checked, output.form, output.options()))
    return 0 if checked.as_recorded else 1


def list_probes() -> int:
    from tensorlens.compare import list_probes as probes

    rows = [(probe.name, probe.question) for probe in probes()]
    size = max(len(name) for name, _ in rows)
    write_out("".join(f"{name:<{size}}  {question}\n" for name, question in rows))
    return 0


def compare(operands: Sequence[str], given: dict[str, Any], output: Output) -> int:
    """`compare A B…`"""
    from tensorlens.compare import ProbeOptions, parse_shape
    from tensorlens.compare import compare as measure
    from tensorlens.render.comparison import render_comparison

    if given["shape"] is not None:
        given = {**given, "shape": parse_shape(given["shape"])}
    comparison = measure(operands, ProbeOptions(**given))
    output.write(render_comparison(comparison, output.form, output.options()))
    return 0
