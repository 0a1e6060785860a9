"""Lists the findings of a report as issues, one per place, as CI services and editors show them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tensorlens.records.model import Span, Trace
from tensorlens.records.report import Diagnostic, Label, Report, Severity
from tensorlens.records.source import line_at
from tensorlens.render.report.headline import script_file
from tensorlens.render.safe_text import safe

STANDING_OUT = "stands-out"  # the code of a sentence of `--training`


@dataclass(frozen=True, slots=True)
class Issue:
    """A finding, or a sentence about the training. `diagnostic` is None for a sentence.

    `labels` are in the order of the report: the main one first.
    """

    code: str
    severity: Severity
    text: str
    labels: tuple[Label, ...]
    diagnostic: Diagnostic | None = None


def issues_of(report: Report) -> Iterator[Issue]:
    """Yields the findings of a report, and then its sentences about the training as notes."""
    for each in report.diagnostics:
        yield Issue(each.code, each.severity, each.title, each.labels, each)
    for sentence in report.standing_out or ():
        yield Issue(STANDING_OUT, "note", sentence.text, sentence.labels)


def details(issue: Issue, trace: Trace) -> list[str]:
    """Returns what else to know, a sentence each: why, what the other lines do, and the first help."""
    found = issue.diagnostic
    lines = [f"why: {found.explanation}"] if found is not None and found.explanation else []
    lines += [f"{place(label.span, trace)}: {label.text}" for label in issue.labels if label.text]
    lines += [f"help: {found.fixes[0].title}"] if found is not None and found.fixes else []
    return [safe(line) for line in lines]


def place(span: Span, trace: Trace) -> str:
    """Returns `train.py:12`."""
    return f"{shown_file(span.file, trace)}:{span.line}"


def shown_file(file: str, trace: Trace) -> str:
    """Returns the path of a file as CI services want it: relative to the current directory if it is below it, with
    forward slashes. A name that is no path, as of a notebook's cell, stays as it is."""
    if file.startswith("<"):
        return file
    path, folder = Path(os.path.normpath(Path(trace.script.folder) / file)), Path.cwd()
    for base in (folder, folder.resolve()):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return path.as_posix()


def is_path(file: str) -> bool:
    """Returns whether a name of a source names a file."""
    return bool(file) and not file.startswith("<")


def source_line(span: Span, trace: Trace) -> str:
    """Returns the line of the source on which a span begins."""
    return line_at(trace.sources.get(span.file, ""), span.line)


def main_file(trace: Trace) -> str:
    """Returns the script, for issues without a line."""
    return shown_file(script_file(trace), trace)
