"""Runs a script as the ranks of a distributed run, in forks, and merges their reports as the command does."""

from __future__ import annotations

from pathlib import Path

from support.warm import Ran, Warm
from tensorlens.analysis.ranks.merge import merged
from tensorlens.diagnostics import report_on
from tensorlens.diagnostics.between_ranks import with_findings_between
from tensorlens.records.merged_report import MergedReport
from tensorlens.records.model import Trace


def report_of(traces: list[Trace]) -> MergedReport:
    """Returns the report of all ranks."""
    return with_findings_between(merged([report_on(trace) for trace in traces]), lambda report: report)


def run_in_ranks(warm: Warm, script: Path, world: int) -> tuple[list[Ran], MergedReport]:
    runs = warm.ranks(script, world)
    return [ran for ran, _ in runs], report_of([trace for _, trace in runs])
