"""`explain --fix` and `--fix --write`: tries the helps that are edits, reports, and writes the best verified one."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from tensorlens.cli.exit_codes import FAILED, INTERRUPTED, safe_line
from tensorlens.cli.output import Output, print_out
from tensorlens.cli.rendered_report import ScriptReporter
from tensorlens.cli.waiting import working
from tensorlens.diagnostics import report_on
from tensorlens.diagnostics.shared.main_finding import main_finding
from tensorlens.errors import UsageError
from tensorlens.records.report import Report
from tensorlens.records.source import shown_path
from tensorlens.runner.compared_runs import ComparedRuns, FinishedRun, compared_runs
from tensorlens.runner.launch import RunOptions, Target, compare_with_copies, exact_lines
from tensorlens.runner.ranks import rank_in
from tensorlens.runner.targets import check_target
from tensorlens.trials.confirm import confirmed_report
from tensorlens.trials.fixes import INTERRUPTED_TRIALS, with_tried_fixes
from tensorlens.trials.written_files import NotWritten, ReadFiles

if TYPE_CHECKING:
    from tensorlens.cli.commands import RunSettings


def check_use(target: Target, settings: RunSettings) -> None:
    """Checks that the options go together.

    Raises:
        UsageError: they do not.
    """
    if not settings.fix:
        raise UsageError("--write goes with --fix")
    if settings.write and target.kind == "stdin":
        raise UsageError("--write can't change a script from standard input")
    if rank_in(os.environ) is not None:
        raise UsageError("--fix runs one process: it can't repeat a distributed run")


def explain_with_fixes(target: Target, options: RunOptions, output: Output, settings: RunSettings) -> int:
    """Runs a script, tries its fixes and reports; first confirms the findings if `--try` asks for it.

    Returns the exit code: that of the report without `--fix`, 130 after Ctrl-C, 1 if a fix could not be written.
    """
    check_target(target)
    reporter = ScriptReporter(output, gate=settings.gate())
    with compared_runs(target, options) as runs:
        first = runs.first(reporter.on_start)
        trace = first.trace()
        files = ReadFiles(trace) if settings.write else None
        wants_copies = options.reference or first.exited.returncode == 0
        try:
            report = (confirmed_report if settings.attempt else _report)(runs, first, wants_copies)
            with working("trying the helps") as progress:
                report = with_tried_fixes(runs, first, report, progress)
        except KeyboardInterrupt:
            report = replace(report_on(trace), tried=INTERRUPTED_TRIALS)
        except Exception:
            if os.environ.get("TENSORLENS_DEBUG"):
                raise
            report = None  # the program has damaged its journal
    shown = reporter.report(trace) if report is None else reporter.rendered(report)
    shown.write(output)
    if report is None:
        return shown.exit_code
    code = INTERRUPTED if report.tried is not None and report.tried.interrupted else shown.exit_code
    return code if files is None or _is_written(files, report, output) else max(code, FAILED)


def _report(runs: ComparedRuns, first: FinishedRun, wants_copies: bool) -> Report:
    """Returns the report of the first run. A program that ends normally is compared with a run that keeps copies."""
    if not wants_copies or first.was_stopped:
        return report_on(first.trace())
    copies = compare_with_copies(runs, first)
    if copies is not None and copies.exited.interrupted:
        raise KeyboardInterrupt
    return report_on(exact_lines(runs, first.trace()))


def _is_written(files: ReadFiles, report: Report, output: Output) -> bool:
    """Writes the best verified fix, if there is one, and says so. Returns False if it could not be written."""
    main = main_finding(report)
    findings = sorted(report.diagnostics, key=lambda each: each is not main)
    found = [fix for finding in findings for fix in finding.fixes if fix.verdict == "verified"]
    if not found:
        _say("nothing written: no help is verified", output)
        return True
    try:
        for file in files.write(found[0].edits):
            _say(f"wrote {shown_path(file, report.trace.script.folder)}", output)
    except NotWritten as error:
        _say(f"nothing written: {error}", output)
        return False
    return True


def _say(text: str, output: Output) -> None:
    """Prints a line where it is not taken for a part of the report."""
    if output.keeps_stdout:
        print(safe_line(text), file=sys.stderr)
    else:
        print_out(safe_line(text) + "\n")
