"""What the commands do, behind the parsing of `cli`: run, diagnose, render, write. Each returns an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorlens.cli.output import Output, print_out
from tensorlens.errors import TensorLensError, UsageError
from tensorlens.records.version import __version__

if TYPE_CHECKING:
    from tensorlens.cli.report import RenderedReport
    from tensorlens.records.claim import Claim
    from tensorlens.records.model import Trace

INTERRUPTED = 130


def _is_watched() -> bool:
    from tensorlens.runner.progress_line import can_show
    from tensorlens.runner.ranks import is_first_here, rank_in

    return sys.stdout.isatty() and can_show(sys.stderr.fileno()) and is_first_here(rank_in(os.environ))


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
    from tensorlens.render.safe_text import safe

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
    print_out(f"tensorlens {__version__}\n")


# --- run, explain, view ---------------------------------------------------------------------------------------------


def explain(
    module: str | None, arguments: Sequence[str], output: Output, timeout: float | None, reference: bool = False
) -> int:
    """`explain SCRIPT [ARGS…]`, `explain -m MODULE [ARGS…]`, `explain - [ARGS…]`."""
    from tensorlens.cli import trailing_options
    from tensorlens.runner.launch import RunOptions, Target, run_and_report

    if module is None and not arguments:
        raise UsageError("explain what? Give a script, - for standard input, or -m and a module")
    tail = trailing_options.split(arguments if module is not None else arguments[1:])
    output = Output(tail.format or output.format, tail.output or output.path, tail.width or output.width).of_rank()
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
    told = run_and_report(target, options, partial(_teller, output))
    output.write(told.text)
    return told.exit_code


def _no_lesson(path: str) -> None:
    """Say how a lesson is run to somebody who wants a lesson explained."""
    from tensorlens.lessons.bundled import bundled

    if not os.path.exists(path) and bundled(path) is not None:
        raise UsageError(f"no such file: {path}; a lesson has this name: tensorlens run {path}")


def run_lessons(names: Sequence[str], everything: bool, output: Output, timeout: float | None) -> int:
    """`run NAME…`, `run PATH`, `run --all`: one report after the other, the worst exit code of all."""
    from tensorlens.lessons import bundled as lessons
    from tensorlens.lessons.lesson_texts import before_report, before_script, claims_of_all, joined
    from tensorlens.runner.launch import RunOptions, Target, run_and_report

    wanted = [lesson.name for lesson in lessons.lessons()] if everything else list(names)
    if not wanted:
        raise UsageError("run what? Give the name of a lesson (tensorlens list shows them), a path, or --all")
    paths = [lessons.find(name) for name in wanted]
    output = output.of_rank()
    if output.path is not None and len(paths) > 1:
        raise UsageError("-o takes one lesson at a time")
    options = RunOptions(timeout=timeout, claims=True, stdout_to_stderr=output.keeps_stdout, live=_is_watched())
    reports: list[str] = []
    counted: list[tuple[str, Sequence[Claim]]] = []
    worst = 0
    for path in paths:
        announced = lessons.announced(path)
        if labelled := output.path is None and not output.keeps_stdout:
            print_out(before_script(announced, first=not counted))
        bundled = lessons.is_bundled(path)
        told = run_and_report(Target("file", str(path)), options, partial(_teller, output, path.name, bundled))
        worst = max(worst, told.exit_code)
        counted.append((path.name, told.claims))
        if output.keeps_stdout and len(paths) > 1:
            reports.append(told.text)
        else:
            output.write((before_report(announced) if labelled else "") + told.text)
    if reports:
        output.write(joined(reports, output.form))
    elif len(paths) > 1:
        print_out(claims_of_all(counted))
    return worst


def new_lesson(path: Path) -> int:
    """`new LESSON.py`: write a lesson to begin with."""
    from tensorlens.lessons.starter import write_starter

    write_starter(path)
    print_out(f"wrote {shown(str(path))}; run it: tensorlens run {shown(str(path))}\n")
    return 0


def view(path: Path, output: Output) -> int:
    """`view TRACE.json`: the report of a saved trace."""
    from tensorlens.cli.report import make_reporter
    from tensorlens.records.trace_file import load

    told = make_reporter(output)(load(path))
    output.write(told.text)
    return told.exit_code


def _teller(output: Output, lesson: str = "", bundled: bool = True) -> Callable[[Trace], RenderedReport]:
    """Called once the program has been started, which takes longer than these imports."""
    from tensorlens.cli.report import make_reporter

    return make_reporter(output, lesson, bundled)


# --- lists and pages ------------------------------------------------------------------------------------------------


def check_statements(article: str | None, output: Output) -> int:
    """`claims [ARTICLE]`: run the lessons that carry the statements, and show what each comes to."""
    from tensorlens.lessons.check_statements import check_documented
    from tensorlens.lessons.statement_report import render_claims

    checked = check_documented(article)
    output.write(render_claims(checked, output.form, output.options()))
    return 0 if checked.as_recorded else 1


def list_probes() -> int:
    from tensorlens.compare import list_probes as probes

    rows = [(probe.name, probe.question) for probe in probes()]
    size = max(len(name) for name, _ in rows)
    print_out("".join(f"{name:<{size}}  {question}\n" for name, question in rows))
    return 0


@dataclass(frozen=True, slots=True)
class Shown:
    """What `compare` prints: every row, or the program behind one."""

    everything: bool = False
    program_of: str | None = None


def compare(operands: Sequence[str], given: dict[str, Any], output: Output, shown: Shown) -> int:
    """`compare A B…`"""
    from tensorlens.compare import ProbeOptions, parse_shape
    from tensorlens.compare import compare as measure
    from tensorlens.render.comparison import render_comparison

    if given["shape"] is not None:
        given = {**given, "shape": parse_shape(given["shape"])}
    comparison = measure(operands, ProbeOptions(**given))
    if shown.program_of is not None:
        from tensorlens.compare.programs import programs

        output.write(programs(comparison, shown.program_of))
        return 0
    output.write(render_comparison(comparison, output.form, output.options(everything=shown.everything)))
    return 0
