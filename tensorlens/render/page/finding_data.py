"""Puts the findings into the page's data: the sentences, and the moment and the place of each label."""

from __future__ import annotations

from typing import Any

from tensorlens.analysis.moments.run_moments import Moments
from tensorlens.diagnostics.shared.main_finding import is_about_failure, main_finding
from tensorlens.diagnostics.shared.named_tensors import named_tensors
from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Fix, Label, Report
from tensorlens.records.source import shown_path
from tensorlens.render.page.source_data import Sources
from tensorlens.render.page.strings import NONE
from tensorlens.render.report.edited_lines import edited_lines
from tensorlens.render.report.findings import confirmation_of
from tensorlens.render.report.fix_diffs import verdict_text
from tensorlens.render.report.headline import final_failure
from tensorlens.render.safe_text import safe, safe_lines


def needed_events(report: Report) -> set[int]:
    """Returns the events that the labels of all findings are about."""
    labels = [label for finding in report.diagnostics for label in finding.labels]
    return {label.event for label in labels if label.event is not None}


def finding_data(report: Report, moments: Moments, sources: Sources) -> list[dict[str, Any]]:
    """Returns the findings, the main one first."""
    main = main_finding(report)
    ordered = [each for each in report.diagnostics if each is main]
    ordered += [each for each in report.diagnostics if each is not main]
    return [_finding(each, report.trace, moments, sources) for each in ordered]


def _finding(finding: Diagnostic, trace: Trace, moments: Moments, sources: Sources) -> dict[str, Any]:
    remarks = [["why", finding.explanation]] if finding.explanation else []
    remarks += [["note", note] for note in finding.notes]
    remarks += [[*confirmation_of(finding)]] if finding.confirmation else []
    remarks += [["also", text] for text in finding.also]
    remarks += [["detail", "; ".join(finding.detail)]] if finding.detail else []
    before = _end_of(finding, trace, moments)
    return {
        "code": safe(finding.code),
        "severity": finding.severity,
        "title": safe(finding.title),
        "labels": [_label(label, moments, sources, before) for label in finding.labels],
        "remarks": [[safe(word), [*map(safe, safe_lines(text.strip()))]] for word, text in remarks],
        "fixes": [_fix(fix, trace, sources) for fix in finding.fixes],
        "tensors": sorted(named_tensors(finding, trace)),
    }


def _end_of(finding: Diagnostic, trace: Trace, moments: Moments) -> int:
    """Returns the position of the failure that a finding is about, else of the end."""
    failure = final_failure(trace)
    place = moments.of_failure(failure) if failure is not None and is_about_failure(trace, finding) else None
    return len(moments.items) - 1 if place is None else place


def _label(label: Label, moments: Moments, sources: Sources, before: int) -> dict[str, Any]:
    """Returns a label. Its moment is the event that it is about or, if that is not known, the last one on its line."""
    moment = moments.of_event(label.event)
    exact = moment is not None
    if moment is None:
        moment = moments.last_at(label.site, before)
    return {
        "role": label.role,
        "text": safe(label.text),
        "place": sources.place(label.span),
        "moment": NONE if moment is None else moment,
        "exact": exact,
    }


def _fix(fix: Fix, trace: Trace, sources: Sources) -> dict[str, Any]:
    changed = edited_lines(fix, trace)
    place = sources.place(fix.place)
    return {
        "title": safe(fix.title),
        "place": NONE if place is None else place,
        "verdict": "" if fix.verdict == "untried" else safe(verdict_text(fix)),
        "verified": fix.verdict == "verified",
        "lines": [
            [safe(shown_path(file, trace.script.folder)), line.sign, line.number, safe(line.text)]
            for file, lines in changed.items()
            for line in lines
        ],
    }
