"""Draws the section about fixes that were tried: what each changes, the best first, as unified diffs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tensorlens.records.edits import unified_diff
from tensorlens.records.report import Fix, Report
from tensorlens.render.highlight import clipped, diff_lines
from tensorlens.render.report.headline import count
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import folded

_RANKS = {"verified": 0, "runs": 1}


@dataclass(frozen=True, slots=True)
class TriedFix:
    """A fix that was tried: its place in the report, and the lines of its diff."""

    title: str  # "help 1"; with the code of its finding if there are several findings
    fix: Fix
    diff: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TriedFixes:
    """The section about fixes that were tried."""

    report: Report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        size = options.max_width
        for number, text in enumerate(summary(self.report)):
            yield from folded(Text(safe(text), "plain" if number else "heading"), size)
        for tried in tried_fixes(self.report):
            style = "good" if tried.fix.verdict == "verified" else "heading"
            yield Text()
            yield from folded(Text(safe(f"{tried.title}: {verdict_text(tried.fix)}"), style), size, 4)
            yield from (clipped(line, size) for line in diff_lines(tried.diff, console))


def tried_fixes(report: Report) -> list[TriedFix]:
    """Returns the fixes that run, the verified ones first."""
    trace, several = report.trace, len(report.diagnostics) > 1
    found = [
        TriedFix(
            f"{finding.code}, {word}" if several else word,
            fix,
            unified_diff(trace.sources, fix.edits, trace.script.folder),
        )
        for finding in report.diagnostics
        for number, fix in enumerate(finding.fixes, 1)
        if fix.verdict != "untried" and (word := f"help {number}" if len(finding.fixes) > 1 else "help")
    ]
    return sorted(found, key=lambda tried: _RANKS[tried.fix.verdict])


def verdict_text(fix: Fix) -> str:
    """Says what the trial of a fix has shown."""
    if fix.verdict == "verified":
        return "verified, the gradients are right" + (f" ({fix.differs})" if fix.differs else "")
    return f"runs; {fix.differs}"


def summary(report: Report) -> Iterator[str]:
    """Says how many helps were tried, and why others were not."""
    tried = report.tried
    if tried is None:
        return
    if tried.tried:
        verdicts = [fix.fix.verdict for fix in tried_fixes(report)]
        parts = [f"{verdicts.count('verified')} verified"] if "verified" in verdicts else []
        running = verdicts.count("runs")
        parts += [f"{running} that {'runs' if running == 1 else 'run'}"] if running else []
        parts += [f"{tried.failed} failed"] if tried.failed else []
        parts += [f"{tried.left_out} not tried, as there are too many"] if tried.left_out else []
        counted = f": {', '.join(parts)}" if parts else ""
        yield f"tried {count(tried.tried, 'way')} to repair it{counted}"
    if tried.note:
        yield tried.note
