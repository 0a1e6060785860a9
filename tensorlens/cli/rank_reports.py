"""Makes one report of all ranks of a distributed run: the rank that ends last prints it."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tensorlens.runner.rank_folder import folder_of
from tensorlens.runner.ranks import rank_in, write_error_file

if TYPE_CHECKING:
    from tensorlens.cli.gate import Gate
    from tensorlens.cli.output import Output
    from tensorlens.records.model import Trace
    from tensorlens.records.report import Report
    from tensorlens.runner.launch import RunOptions, Target


def explain_rank(target: Target, options: RunOptions, output: Output, gate: Gate) -> int:
    """Runs one rank, and prints the report of all if it is the last to end. Returns the exit code of this rank."""
    from tensorlens.cli.merged_reports import report_of, write_merged
    from tensorlens.cli.rendered_report import ScriptReporter
    from tensorlens.records.rank_file import shared
    from tensorlens.runner.launch import run_script

    rank = rank_in(os.environ)
    assert rank is not None
    with folder_of(rank, os.environ) as folder:
        try:
            with _stopped_only_before_the_run() as started:
                trace = run_script(target, options, started.set)
                reported = gate.passed(report_of(trace))
                inform_launcher(reported)
                paths = folder.save(trace)
                if paths and folder.is_alone:
                    own = output.of_rank()
                    ScriptReporter(own, gate=gate).rendered(reported).write(own)
                elif paths:
                    write_merged([*shared(loaded(paths, trace))], output.of_run(has_all=folder.expects_all), gate)
        except _StoppedBeforeTheRunError:
            paths = folder.leave()
            if traces := [*shared(loaded(paths))]:
                write_merged(traces, output.of_run(has_all=folder.expects_all), gate)
            reported = None
        if paths:
            folder.remove()
    return 128 + signal.SIGTERM if reported is None else gate.exit_code(reported)


def explain_rank_alone(target: Target, options: RunOptions, output: Output, gate: Gate) -> int:
    """Runs one rank, and writes a report or a trace of its own. Returns its exit code."""
    from tensorlens.cli.merged_reports import report_of
    from tensorlens.cli.rendered_report import ScriptReporter
    from tensorlens.runner.launch import run_script

    reporter = ScriptReporter(output, gate=gate)
    report = report_of(run_script(target, options, reporter.on_start))
    inform_launcher(report)
    rendered = reporter.rendered(report)
    rendered.write(output)
    return rendered.exit_code


class _StoppedBeforeTheRunError(Exception):
    """Says that SIGTERM came before the script ran."""


def inform_launcher(report: Report, path: str | None = None) -> None:
    """Gives the launcher the main finding of a rank that failed, and its place. A rank that failed by itself did so
    before the others: its time is rounded down, that of a rank which waited for it is rounded up. `path` is the file
    that the launcher reads, if it is not that of this process."""
    from tensorlens.analysis.ranks.endings import ended_at, ended_text, has_failed, place_of, waited_for_gone
    from tensorlens.diagnostics.shared.main_finding import is_about_failure, main_finding

    trace = report.trace
    file = os.environ.get("TORCHELASTIC_ERROR_FILE", "") if path is None else path
    if not (file and has_failed(trace)):
        return
    text = ended_text(trace)
    main = main_finding(report)
    if main is not None and main.labels and is_about_failure(trace, main):
        text = f"[{main.code}] {main.title} ({place_of(trace, main.labels[0].span)})"
    seconds = math.ceil(time.time()) if waited_for_gone(trace) else math.floor(ended_at(trace))
    write_error_file(file, f"tensorlens: {text}", seconds)


def loaded(paths: Sequence[Path], own: Trace | None = None) -> Iterator[Trace]:
    """Yields the traces of all ranks. A damaged file is left out: its rank left no trace."""
    from tensorlens.errors import TraceFileError
    from tensorlens.records.trace_file import load

    for path in paths:
        try:
            trace = load(path)
        except TraceFileError:
            continue
        if trace.script.rank is not None:
            rank = None if own is None else own.script.rank
            yield own if own is not None and rank is not None and rank.number == trace.script.rank.number else trace


@contextmanager
def _stopped_only_before_the_run() -> Iterator[threading.Event]:
    """Lets SIGTERM end this process only before the script runs: the launcher sends it when another rank has failed,
    and the report is still to be made. While the script runs, the signal is passed on to it."""
    started = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield started
        return

    def terminated(*_: object) -> None:
        if not started.is_set():
            raise _StoppedBeforeTheRunError

    previous = signal.signal(signal.SIGTERM, terminated)
    try:
        yield started
    finally:
        signal.signal(signal.SIGTERM, previous)
