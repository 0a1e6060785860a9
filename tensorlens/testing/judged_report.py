"""Decides what a test's report means: which findings fail a test that passes, and how they look."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tensorlens.records.error_messages import entry
from tensorlens.records.report import Diagnostic, Report
from tensorlens.records.source import shown_path
from tensorlens.render.report.findings import Finding, short_finding
from tensorlens.render.tables import printed

WIDTH = 100
REFERENCE = "--tensorlens-reference"
_SHOWN = 3  # findings in full; the others are listed
WRONG, UNTRAINED, KEPT = "WRONG GRADIENTS", "WRONG TRAINING", "KEPT GRAPHS"
_ABOUT_TRAINING = frozenset(("training", "optimizers", "modules", "requires_grad"))  # families
_ALSO_TRAINING = frozenset(("state-dict-aliases-parameters",))
_ABOUT_MEMORY = frozenset(("running-total-keeps-graph-alive",))


def allowed(report: Report, codes: Collection[str]) -> Report:
    """Returns the report without the findings with some codes, and without the exception that ended the test: pytest
    shows that itself."""
    kept = (each for each in report.diagnostics if each.code not in codes and entry(each.code) is not None)
    return replace(report, diagnostics=tuple(map(_with_own_option, kept)))


def _with_own_option(finding: Diagnostic) -> Diagnostic:
    """Returns a finding whose notes name the option of pytest that makes the second run."""
    return replace(finding, notes=tuple(text.replace("`--reference`", f"`{REFERENCE}`") for text in finding.notes))


def failing(report: Report) -> tuple[Diagnostic, ...]:
    """Returns the findings that fail a test: mistakes for which PyTorch raises and warns nothing.

    An error that the test catches is none of them, as it may be what the test asks for; PyTorch's own warnings are none
    either, as pytest has its own filters for these.
    """
    return tuple(each for each in report.diagnostics if each.severity != "note" and is_silent(each))


def is_silent(finding: Diagnostic) -> bool:
    """Returns whether PyTorch neither raises nor warns for a finding."""
    known = entry(finding.code)
    return known is not None and known.kind == "silent"


def word_for(findings: Collection[Diagnostic]) -> str:
    """Returns the word for the outcome of a test with these findings."""
    if all(each.code in _ABOUT_MEMORY for each in findings):
        return KEPT
    return UNTRAINED if all(map(_is_about_training, findings)) else WRONG


def _is_about_training(finding: Diagnostic) -> bool:
    known = entry(finding.code)
    return finding.code in _ALSO_TRAINING or (known is not None and known.family in _ABOUT_TRAINING)


def text_of(report: Report, findings: Collection[Diagnostic]) -> str:
    """Returns findings as text: the first in full, the others as a list."""
    shown = list(findings)
    parts: list[object] = [Finding(each, report.trace) for each in shown[:_SHOWN]]
    parts += [short_finding(each, report.trace) for each in shown[_SHOWN:]]
    return printed(parts, WIDTH, False).strip("\n")  # type: ignore[arg-type]


def place_of(report: Report, finding: Diagnostic) -> tuple[str, int]:
    """Returns the main line of a finding; ("", 0) if none is known."""
    if not finding.labels:
        return "", 0
    span = finding.labels[0].span
    return shown_path(span.file, report.trace.script.folder), span.line
