"""Picks the finding that a reader sees first: the error that ended the script, else the most severe one."""

from __future__ import annotations

from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Report


def main_finding(report: Report) -> Diagnostic | None:
    """Returns the error that ended the script, else the most severe finding; None if there is no finding."""
    trace, diagnostics = report.trace, report.diagnostics
    number = trace.script.failure
    kind = None if number is None else trace.failures[number].kind
    about = [each for each in diagnostics if is_about_failure(trace, each)]
    same_kind = [each for each in about if each.code == kind]
    return next(iter([*same_kind, *about, *diagnostics]), None)


def is_about_failure(trace: Trace, diagnostic: Diagnostic) -> bool:
    """Returns whether a finding is an error that marks a line on which the exception passed that ended the script."""
    number = trace.script.failure
    if number is None or diagnostic.severity != "error":
        return False
    failure = trace.failures[number]
    spans = [trace.sites[site].span for site in (failure.site, *failure.stack) if site is not None]
    return not {(s.file, s.line) for s in spans}.isdisjoint((x.span.file, x.span.line) for x in diagnostic.labels)
