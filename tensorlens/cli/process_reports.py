"""Makes one report of all processes of a run: the ranks that the program starts and, with `--follow`, every process."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tensorlens.cli.exit_codes import FAILED, OK
from tensorlens.cli.merged_reports import merged_report, report_of, write_report
from tensorlens.cli.output import MERGED_FORMS, Output
from tensorlens.cli.rendered_report import ScriptReporter
from tensorlens.runner.followed_processes import Followed, FollowedProcesses, generations, is_rank, with_true_gaps
from tensorlens.runner.launch import RunOptions, Target, run_script

if TYPE_CHECKING:
    from tensorlens.cli.gate import Gate
    from tensorlens.cli.shared_ranks import SharedRanks
    from tensorlens.records.merged_report import MergedReport
    from tensorlens.records.model import Script, Trace
    from tensorlens.records.process_report import ProcessReport
    from tensorlens.records.report import Diagnostic, Report


def explain_processes(target: Target, options: RunOptions, output: Output, gate: Gate, everything: bool) -> int:
    """Runs a script and reports it, together with the processes that it starts. Returns the exit code."""
    shared = _shared()
    processes = FollowedProcesses(everything, options.steps, options.training)
    processes.on_end = _inform_launcher
    if shared is not None:
        processes.on_rank = shared.joined
    reporter = ScriptReporter(output, gate=gate)

    def on_trace(trace: Trace) -> None:
        if not (everything or processes.has_some):
            reporter.on_trace(trace)

    try:
        trace = run_script(target, replace(options, processes=processes), reporter.on_start, on_trace)
        found = processes.found() if processes.is_used else []
        first = processes.rank_of_first()
    finally:
        processes.remove()
    if not found:
        report = reporter.report(trace)
        report.write(output)
        return report.exit_code
    try:
        return _write(_Run.of(trace, first, found, gate), output, gate, shared)
    finally:
        if shared is not None:
            shared.close()


def _inform_launcher(path: str, trace: Trace) -> None:
    """Gives the launcher the main finding of a rank that failed."""
    from tensorlens.cli.rank_reports import inform_launcher

    inform_launcher(report_of(trace), path)


def _shared() -> SharedRanks | None:
    """Returns what shares the ranks of this machine with others; None: they are reported alone."""
    from tensorlens.runner.ranks import FOLDER

    if FOLDER not in os.environ:
        return None
    from tensorlens.cli.shared_ranks import SharedRanks

    return SharedRanks()


_OF_CHILDREN = ("ProcessRaisedException", "ProcessExitedException", "ChildFailedError")


@dataclass(frozen=True, slots=True)
class _Run:
    """The reports of all processes of a run: the ranks in groups that ran together, and the others."""

    main: Report
    ranks: list[list[Report]]
    others: list[ProcessReport]

    @classmethod
    def of(cls, trace: Trace, first: tuple[int, int] | None, found: Sequence[Followed], gate: Gate) -> _Run:
        from tensorlens.records.model import Rank
        from tensorlens.records.process_report import ProcessReport
        from tensorlens.runner.ranks import host

        ranks = [(each.trace, each.record.began) for each in found if each.trace is not None and is_rank(each.trace)]
        if first is not None and first[1] > 1 and ranks:
            trace = with_true_gaps(replace(trace, script=replace(trace.script, rank=Rank(*first, host()))))
            ranks.insert(0, (trace, 0.0))
        groups = generations([each for each, _ in ranks], [began for _, began in ranks])
        reports = [[gate.passed(report_of(each)) for each in group] for group in groups]
        main = next((each for group in reports for each in group if each.trace is trace), None)
        others = []
        for number, each in enumerate(found, 2):
            if each.trace is None or not is_rank(each.trace):
                report = None if each.trace is None else gate.passed(report_of(each.trace))
                others.append(ProcessReport(number, _what(each, trace.script), _ended(each), report))
        main = main or gate.passed(report_of(trace))
        if _came_from(trace, [each.trace for each in found if each.trace is not None]):
            main = replace(main, diagnostics=tuple(each for each in main.diagnostics if not _is_about_end(trace, each)))
        return cls(main, reports, others)

    def listed(self) -> list[ProcessReport]:
        """Returns the processes that are no ranks. The first process is listed if it only started the ranks, and there
        is something to say about it."""
        from tensorlens.analysis.ranks.endings import ended_text, has_failed
        from tensorlens.records.process_report import ProcessReport

        trace = self.main.trace
        if not self.ranks or trace.script.rank is not None:
            return self.others
        own, is_consequence = self.main, _ended_with_child(trace)
        if is_consequence:
            rest = tuple(each for each in own.diagnostics if not _is_about_end(trace, each))
            own = replace(own, diagnostics=rest)
        if not (own.diagnostics or self.others or (has_failed(trace) and not is_consequence)):
            return []
        return [ProcessReport(1, "the process that started the ranks", ended_text(trace), own), *self.others]

    def exit_code(self, gate: Gate) -> int:
        """Returns the exit code of the first process, or 1 if a finding of another one counts."""
        reports = [self.main, *(each for group in self.ranks for each in group)]
        reports += [each.report for each in self.others if each.report is not None]
        return gate.exit_code(self.main) or (FAILED if any(map(gate.has_counting, reports)) else OK)


def _ended_with_child(trace: Trace) -> bool:
    """Returns whether the exception that ended a process says that a process which it started has failed."""
    number = trace.script.failure
    return number is not None and trace.failures[number].type in _OF_CHILDREN


def _came_from(trace: Trace, others: Sequence[Trace]) -> bool:
    """Returns whether the exception that ended a process quotes one that another process raised, which has the
    finding."""
    number = trace.script.failure
    message = "" if number is None else trace.failures[number].message
    raised = {failure.message for each in others for failure in each.failures}
    return any(each and each in message and each != message for each in raised)


def _is_about_end(trace: Trace, diagnostic: Diagnostic) -> bool:
    from tensorlens.diagnostics.shared.main_finding import is_about_failure

    return diagnostic.code == "uncaught-exception" or is_about_failure(trace, diagnostic)


def _what(each: Followed, main: Script) -> str:
    """Returns "worker 0 of a DataLoader, started at line 7"."""
    from tensorlens.records.source import shown_path

    if not each.file:
        return each.what or "a process"
    shown = shown_path(each.file, main.folder)
    own = main.path.replace("\\", "/").rpartition("/")[2]
    place = f"line {each.line}" if shown == own else f"{shown}:{each.line}"
    return f"{each.what}, started at {place}" if each.what else f"forked at {place}"


def _ended(each: Followed) -> str:
    from tensorlens.analysis.ranks.endings import ended_text

    if each.trace is not None:
        return ended_text(each.trace)
    return "it imported no torch" if each.is_known else "not traced"


def _write(run: _Run, output: Output, gate: Gate, shared: SharedRanks | None) -> int:

    groups = [merged_report(group, gate) for group in run.ranks]
    if run.ranks and shared is not None:
        groups[-1:] = shared.merged([each.trace for each in run.ranks[-1]], gate)
    if output.form not in MERGED_FORMS or output.form == "html" or output.saves_trace:
        _write_files(run, groups, output, gate)
    elif output.form != "json":
        if text := _text(run, groups, output):
            output.write(text)
    elif groups or not run.ranks:  # else another machine writes the report
        output.write(_json(run, groups, output))
    return run.exit_code(gate)


def _text(run: _Run, groups: Sequence[MergedReport], output: Output) -> str:
    from tensorlens.render import render
    from tensorlens.render.report.merged_text import merged_text
    from tensorlens.render.report.processes_text import processes_text

    options, others = output.options(), run.listed()
    texts = [processes_text(others, output.form, options)] if others else []
    texts += [merged_text(group, output.form, options) for group in groups]
    if not run.ranks:
        texts.append(render(run.main, output.form, options))
    return "\n".join(text if text.endswith("\n") else f"{text}\n" for text in texts)


def _json(run: _Run, groups: Sequence[MergedReport], output: Output) -> str:
    """Returns the report of the last ranks, or else of the first process, with the other processes."""
    from tensorlens.render import render
    from tensorlens.render.report.json import diagnostic_dict
    from tensorlens.render.report.merged_text import merged_text

    options = output.options()
    text = merged_text(groups[-1], "json", options) if groups else render(run.main, "json", options)
    data = json.loads(text)
    data["processes"] = [
        {
            "process": each.number,
            "what": each.what,
            "ended": each.ended,
            "diagnostics": []
            if each.report is None
            else [diagnostic_dict(one, each.report.trace) for one in each.report.diagnostics],
        }
        for each in run.listed()
    ]
    return json.dumps(data, indent=1)


def _write_files(run: _Run, groups: Sequence[MergedReport], output: Output, gate: Gate) -> None:
    """Writes the ranks and each other process to a file of its own; to standard output only the most important."""
    from tensorlens.runner.ranks import own_file, process_file

    reporter = ScriptReporter(output, gate=gate)
    others = [(each.number, each.report) for each in run.listed()]
    if output.form in MERGED_FORMS and groups:
        write_report(groups[-1], output)
    elif run.ranks:
        for report in run.ranks[-1]:
            rank = report.trace.script.rank
            path = None if output.path is None or rank is None else own_file(output.path, rank)
            reporter.rendered(report).write(replace(output, path=path))
    else:
        reporter.rendered(run.main).write(output)
    for number, each in others if output.path is not None else []:
        if each is not None and output.path is not None:
            reporter.rendered(each).write(replace(output, path=process_file(output.path, number)))
