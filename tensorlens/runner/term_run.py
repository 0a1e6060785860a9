"""Adds to a run what a second run measured of the terms of its losses, and of the columns of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isclose, isnan
from typing import TYPE_CHECKING

from tensorlens.journal.child_config import LossTerms, Measurement
from tensorlens.records.training import ParameterStatistics, TermsUnknown

if TYPE_CHECKING:
    from tensorlens.runner.compared_runs import FinishedRun

_CLOSE = 1e-3  # relative: the gradients of two runs may differ by rounding
_NOT_ADDED = "the terms alone can't be measured, or do not add up to the whole gradient"


def has_losses(wanted: Sequence[Measurement]) -> bool:
    """Returns whether the terms of a loss are measured: the report shows them, or why they are not known."""
    return any(isinstance(each, LossTerms) for each in wanted)


def add_terms(first: FinishedRun, second: FinishedRun, other: str, wanted: Sequence[Measurement]) -> None:
    """Adds the gradients of the terms to the first run, and the derivatives of columns. `other` says why a second run
    has other values, if it has."""
    if not _is_same(first, second):
        if has_losses(wanted):
            add_reason(first, other)
        return
    end = first.reader.facts["measured"][-1].index
    found = second.reader.facts["term_gradients"]
    first.reader.facts["term_gradients"] = [replace(each, index=min(each.index, end)) for each in found]
    columns = second.reader.facts["column_derivatives"]
    first.reader.facts["column_derivatives"] = [replace(each, index=min(each.index, end)) for each in columns]
    if not found and has_losses(wanted):
        add_reason(first, _NOT_ADDED)


def add_reason(first: FinishedRun, reason: str) -> None:
    """Adds to the first run why the gradients of the terms are not known."""
    measured = first.reader.facts["measured"]
    first.reader.facts["terms_unknown"] = [TermsUnknown(measured[-1].index if measured else 0, reason)]


def _is_same(first: FinishedRun, second: FinishedRun) -> bool:
    """Returns whether two runs had the same parameters, and the same gradients but for rounding."""
    own: list[ParameterStatistics] = first.reader.facts["statistics"]
    again: list[ParameterStatistics] = second.reader.facts["statistics"]
    if not own or len(own) != len(again):
        return False
    return all(_are_alike(one, other) for one, other in zip(own, again, strict=True))


def _are_alike(one: ParameterStatistics, other: ParameterStatistics) -> bool:
    counts = (one.tensor, one.rounds, one.filled, one.nonfinite, len(one.norms))
    if counts != (other.tensor, other.rounds, other.filled, other.nonfinite, len(other.norms)):
        return False
    pairs = zip(one.norms, other.norms, strict=True)
    return all(isclose(a, b, rel_tol=_CLOSE, abs_tol=1e-30) or (isnan(a) and isnan(b)) for a, b in pairs)
