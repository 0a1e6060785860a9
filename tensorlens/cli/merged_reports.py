"""Writes the report of several ranks, from their traces: `merge`, `view` of a file that has several, and the end of a
distributed run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensorlens.cli.output import MERGED_FORMS
from tensorlens.errors import TraceFileError, UsageError

if TYPE_CHECKING:
    from tensorlens.cli.gate import Gate
    from tensorlens.cli.output import Output
    from tensorlens.records.merged_report import MergedReport
    from tensorlens.records.model import Trace
    from tensorlens.records.report import Report


def merge(paths: Sequence[Path], output: Output, gate: Gate) -> int:
    """`merge RANK.json...`: prints one report of the saved traces of several ranks, or writes them to one file."""
    from tensorlens.records.rank_file import why_not_one_run

    if not paths:
        raise UsageError("merge what? Give the traces of the ranks: tensorlens merge trace.rank*.json")
    _check_form(output, "merge")
    traces = _traces_in(paths)
    if problem := why_not_one_run(traces):
        raise UsageError(problem)
    return write_merged([trace for _, trace in traces], output, gate)


def view_ranks(path: Path, output: Output, gate: Gate) -> int:
    """`view RUN.json`: prints the report of the ranks whose traces are in one file."""
    from tensorlens.records.rank_file import load_ranks, why_not_one_run

    _check_form(output, "view", " of several ranks")
    traces = load_ranks(path)
    if problem := why_not_one_run([(str(path), trace) for trace in traces]):
        raise TraceFileError(f"{path} is damaged: {problem}")
    return write_merged(traces, output, gate)


def write_merged(traces: Sequence[Trace], output: Output, gate: Gate) -> int:
    """Writes the report of several ranks, or their traces to one file. Returns the exit code of the command."""
    report = merged_report([gate.passed(report_of(trace)) for trace in traces], gate)
    write_report(report, output)
    return gate.exit_code_of_ranks(report)


def merged_report(reports: Sequence[Report], gate: Gate) -> MergedReport:
    """Returns the reports of several ranks as one, with the findings that compare them."""
    from tensorlens.analysis.ranks.merge import merged
    from tensorlens.diagnostics.between_ranks import with_findings_between

    return with_findings_between(merged(reports), gate.passed)


def write_report(report: MergedReport, output: Output) -> None:
    """Writes the report of several ranks, or their traces to one file."""
    if not (output.saves_trace and output.path is not None):
        output.write(_text(report, output))
        return
    from tensorlens.records.rank_file import save_ranks

    try:
        save_ranks([each.trace for each in report.reports], output.path)
    except OSError as error:
        raise UsageError(f"can't write {output.path}: {error.strerror}") from None


def report_of(trace: Trace) -> Report:
    """Returns the report of one rank."""
    from tensorlens.diagnostics import report_on

    return report_on(trace)


def _traces_in(paths: Sequence[Path]) -> list[tuple[str, Trace]]:
    """Returns the traces in files, each with the name of its file: of one rank, or of several."""
    from tensorlens.records.rank_file import has_ranks, load_ranks, shared
    from tensorlens.records.trace_file import load

    names: list[str] = []

    def loaded() -> Iterator[Trace]:
        for path in paths:
            for trace in load_ranks(path) if has_ranks(path) else [load(path)]:
                names.append(str(path))
                yield trace

    traces = [*shared(loaded())]
    return [*zip(names, traces, strict=True)]


def _check_form(output: Output, command: str, of: str = "") -> None:
    if output.form not in MERGED_FORMS:
        raise UsageError(f"{command} can't write the form {output.form}{of} (there are {', '.join(MERGED_FORMS)})")


def _text(report: MergedReport, output: Output) -> str:
    if output.form == "html":
        from tensorlens.render.page.ranks_page import ranks_to_html

        return ranks_to_html(report, output.options())
    from tensorlens.render.report.merged_text import merged_text

    return merged_text(report, output.form, output.options())
