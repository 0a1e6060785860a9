"""Defines `ProcessReport`: what is known about one of the processes that a program started."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.records.report import Report


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """A process of a run that is no rank. The first process of the run has the number 1."""

    number: int
    what: str  # "worker 0 of a DataLoader, started at line 7"
    ended: str  # "exit code 0", "RuntimeError at line 12", "it imported no torch"
    report: Report | None  # None: it was not traced
