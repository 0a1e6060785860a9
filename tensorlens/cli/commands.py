"""The commands, after parsing: each runs, diagnoses, renders, writes, and returns an exit code.

The functions import what they need when they run, so that every command starts fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorlens.cli.exit_codes import FAILED, OK, safe_line
from tensorlens.cli.output import Output, print_out
from tensorlens.cli.run_settings import RunSettings as RunSettings
from tensorlens.cli.waiting import working
from tensorlens.errors import UsageError
from tensorlens.records.version import __version__

if TYPE_CHECKING:
    from tensorlens.journal.child_config import Measurement
    from tensorlens.records.claim import Claim
    from tensorlens.records.model import Trace
    from tensorlens.runner.launch import RunOptions, Target


def show_version() -> None:
    """`--version`."""
    print_out(f"tensorlens {__version__}\n")


def explain(module: str | None, arguments: Sequence[str], output: Output, settings: RunSettings) -> int:
    """`explain SCRIPT [ARGS…]`, `explain -m MODULE [ARGS…]`, `explain - [ARGS…]`: runs a script and reports."""
    from tensorlens.cli import trailing_options

    if module is None and not arguments:
        raise UsageError("explain what? Give a script, - for standard input, or -m and a module")
    trailing = trailing_options.split(arguments if module is not None else arguments[1:])
    output = output.joined_with(trailing)
    target = target_of(module, arguments, trailing.argv)
    settings = settings.joined_with(trailing)
    shares_report = output.is_merged() and not (settings.attempt or settings.reference == "eager")
    output = output if shares_report else output.of_rank()
    options = _run_options(output, settings)
    settings.check_runs()
    if settings.fix or settings.write:
        from tensorlens.cli.tried_fixes import check_use, explain_with_fixes

        check_use(target, settings)
        return explain_with_fixes(target, options, output, settings)
    if shares_report:
        from tensorlens.cli.rank_reports import explain_rank

        return explain_rank(target, options, output, settings.gate())
    return _explain_one_process(target, options, output, settings)


def _explain_one_process(target: Target, options: RunOptions, output: Output, settings: RunSettings) -> int:
    """Runs a script that shares its report with no other rank."""
    from tensorlens.cli.rendered_report import ScriptReporter
    from tensorlens.runner.launch import run_script
    from tensorlens.runner.ranks import rank_in

    reporter = ScriptReporter(output, gate=settings.gate())
    if settings.attempt:
        from tensorlens.trials.confirm import report_with_trials

        report = reporter.rendered(report_with_trials(target, options, reporter.on_start))
    elif settings.reference == "eager":
        from tensorlens.trials.eager_runs import report_with_eager

        report = reporter.rendered(report_with_eager(target, options, reporter.on_start))
    elif rank_in(os.environ) is not None:
        from tensorlens.cli.rank_reports import explain_rank_alone

        return explain_rank_alone(target, options, output, settings.gate())
    elif settings.reference:
        report = reporter.report(run_script(target, options, reporter.on_start, reporter.on_trace))
    else:
        from tensorlens.cli.process_reports import explain_processes

        return explain_processes(target, options, output, settings.gate(), settings.follow)
    report.write(output)
    return report.exit_code


def _run_options(output: Output, settings: RunSettings) -> RunOptions:
    from tensorlens.runner.launch import RunOptions

    return RunOptions(
        timeout=settings.timeout,
        stdout_to_stderr=output.keeps_stdout,
        show_progress=is_watched(),
        reference=settings.reference == "copies",
        steps=settings.chosen_steps(),
        training=settings.training,
        terms_of=_terms_of if settings.training else None,
    )


def _terms_of(trace: Trace) -> tuple[Measurement, ...]:
    """Chooses the terms of losses and the columns of gradients that a second run measures."""
    from tensorlens.analysis.training.gradients.hessian_rows import columns_to_measure
    from tensorlens.analysis.training.term_shares import terms_to_measure

    return (*terms_to_measure(trace), *columns_to_measure(trace))


def target_of(module: str | None, arguments: Sequence[str], argv: tuple[str, ...]) -> Target:
    """Returns what to run.

    Raises:
        UsageError: it is the name of a lesson, and no file.
    """
    from tensorlens.runner.launch import Target

    if module is not None:
        return Target("module", module, argv)
    if arguments[0] == "-":
        return Target("stdin", "-", argv)
    _refuse_lesson_name(arguments[0])
    return Target("file", arguments[0], argv)


def is_watched() -> bool:
    """Returns whether somebody waits at a terminal, so that a progress line is useful."""
    from tensorlens.runner.progress_line import can_show
    from tensorlens.runner.ranks import is_first_here, rank_in

    return sys.stdout.isatty() and can_show(sys.stderr.fileno()) and is_first_here(rank_in(os.environ))


def _refuse_lesson_name(path: str) -> None:
    """Raises a UsageError that names the right command if `path` is the name of a lesson, and no file."""
    from tensorlens.lessons.bundled import bundled

    if not os.path.exists(path) and bundled(path) is not None:
        raise UsageError(f"no such file: {path}; a lesson has this name: tensorlens run {path}")


def merge(paths: Sequence[Path], output: Output) -> int:
    """`merge RANK.json...`: prints one report of the saved traces of several ranks, or writes them to one file."""
    from tensorlens.cli.merged_reports import merge as merge_ranks

    return merge_ranks(paths, output, RunSettings().gate())


def run_lessons(names: Sequence[str], everything: bool, output: Output, timeout: float | None) -> int:
    """`run NAME…`, `run PATH`, `run --all`: prints one report after the other; returns the highest exit code."""
    from tensorlens.cli.rendered_report import ScriptReporter
    from tensorlens.lessons import bundled
    from tensorlens.lessons.lesson_texts import before_report, before_script, between_lessons, claims_of_all, joined
    from tensorlens.runner.launch import RunOptions, Target, run_script

    wanted = [lesson.name for lesson in bundled.lessons()] if everything else list(names)
    if not wanted:
        raise UsageError("run what? Give the name of a lesson (tensorlens list shows them), a path, or --all")
    paths = [bundled.find(name) for name in wanted]
    output = output.of_rank()
    several = len(paths) > 1
    if output.path is not None and several:
        raise UsageError("-o takes one lesson at a time")
    if output.form == "html" and several:
        raise UsageError("--format html takes one lesson at a time")
    options = RunOptions(timeout, claims=True, stdout_to_stderr=output.keeps_stdout, show_progress=is_watched())
    held_back: list[str] = []
    claims: list[tuple[str, Sequence[Claim]]] = []
    exit_code = OK
    for path in paths:
        header = bundled.header(path)
        if labelled := output.path is None and not output.keeps_stdout:
            separated = between_lessons(len(claims) + 1, len(paths), path.name, output.options()) if several else ""
            print_out(separated + before_script(header))
        reporter = ScriptReporter(output, path.name, bundled.is_bundled(path))
        trace = run_script(Target("file", str(path)), options, reporter.on_start, reporter.on_trace)
        report = reporter.report(trace)
        exit_code = max(exit_code, report.exit_code)
        claims.append((path.name, report.claims))
        if output.keeps_stdout and several:
            held_back.append(report.text)
        else:
            report.write(output, before_report(header) if labelled else "")
    if held_back:
        output.write(joined(held_back, output.form))
    elif several:
        print_out(claims_of_all(claims, output.options()))
    return exit_code


def new_lesson(path: Path) -> int:
    """`new LESSON.py`: writes a lesson to start from."""
    from tensorlens.lessons.starter import write_starter

    write_starter(path)
    print_out(f"wrote {safe_line(str(path))}; run it: tensorlens run {safe_line(str(path))}\n")
    return OK


def view(path: Path, output: Output, settings: RunSettings) -> int:
    """`view TRACE.json`: prints the report of a saved trace, or of the ranks whose traces are in one file."""
    from tensorlens.cli.rendered_report import saved_report
    from tensorlens.records.rank_file import has_ranks

    if has_ranks(path):
        from tensorlens.cli.merged_reports import view_ranks

        return view_ranks(path, output, settings.gate())
    report = saved_report(path, output, settings.gate())
    report.write(output)
    return report.exit_code


# --- lists and pages ------------------------------------------------------------------------------------------------


def check_statements(article: str | None, output: Output) -> int:
    """`claims [ARTICLE]`: runs the lessons that check the articles' statements, and prints the verdicts."""
    from tensorlens.lessons.check_statements import check_documented
    from tensorlens.lessons.statement_report import render_claims

    with working("running the lessons"):
        checked = check_documented(article)
    output.write(render_claims(checked, output.form, output.options()))
    return OK if checked.as_recorded else FAILED


def list_probes(output: Output) -> int:
    """`compare --list-probes`: prints the name and the question of every probe."""
    from tensorlens.compare import list_probes as probes
    from tensorlens.render.lists import render_probes

    output.write(render_probes(probes(), output.prose_options()))
    return OK


@dataclass(frozen=True, slots=True)
class ComparisonParts:
    """The parts of a comparison to print: the program of the row `program_of`, or else the table (`everything`: all of
    its rows)."""

    everything: bool = False
    program_of: str | None = None


def compare(operands: Sequence[str], settings: dict[str, Any], output: Output, parts: ComparisonParts) -> int:
    """`compare A B…`: measures the operands and prints them side by side."""
    from tensorlens.compare import ProbeOptions, parse_shape
    from tensorlens.compare import compare as measure
    from tensorlens.render.comparison import render_comparison

    if settings["shape"] is not None:
        settings = {**settings, "shape": parse_shape(settings["shape"])}
    with working("measuring") as report:
        comparison = measure(operands, ProbeOptions(**settings), report)
    if parts.program_of is not None:
        from tensorlens.compare.programs import programs

        output.write(programs(comparison, parts.program_of))
        return OK
    output.write(render_comparison(comparison, output.form, output.options(everything=parts.everything)))
    return OK
