"""Defines `MergedReport`: the reports of the ranks of one distributed run, and how the ranks differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensorlens.records.model import Span
from tensorlens.records.report import Diagnostic, Report

Ending = Literal["ended", "failed first", "failed alike", "waited", "timed out", "stopped", "failed later", "no trace"]


@dataclass(frozen=True, slots=True)
class RankEnding:
    """Says how one rank ended.

    `waited`: it waited for a rank whose process was gone. `timed out`: it waited for another rank until the time limit
    of a collective. `stopped`: a signal ended it. `failed later`: it failed after
    another rank, at another place.
    """

    rank: int
    ending: Ending
    text: str  # "ended with exit code 0", "RuntimeError at line 7"
    last: Span | None  # the last line that the trace has
    report: Report | None  # None: the rank left no trace


@dataclass(frozen=True, slots=True)
class RankedFinding:
    """A finding, the ranks that have it, and the report of the first of these."""

    diagnostic: Diagnostic
    ranks: tuple[int, ...]
    report: Report


@dataclass(frozen=True, slots=True)
class RankDifference:
    """A sentence about how ranks differ, and the lines that it is about. `inputs`: they train on the same."""

    kind: Literal["branch", "gradient", "collective", "waiting", "parameters", "arrival", "inputs"]
    text: str
    ranks: tuple[int, ...]
    lines: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class MergedReport:
    """The reports of the ranks of one run, by their numbers. `first` is the rank that failed first, if one is known."""

    reports: tuple[Report, ...]
    world: int
    first: int | None
    endings: tuple[RankEnding, ...]
    findings: tuple[RankedFinding, ...]
    differences: tuple[RankDifference, ...]

    @property
    def main(self) -> Report:
        """Returns the report of the rank that failed first, or else that of the lowest rank."""
        return next((each for each in self.reports if _number(each) == self.first), self.reports[0])


def _number(report: Report) -> int | None:
    rank = report.trace.script.rank
    return None if rank is None else rank.number
