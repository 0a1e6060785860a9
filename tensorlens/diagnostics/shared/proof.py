"""Checks findings against `--reference`: a second run that keeps copies of what autograd saves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import named
from tensorlens.records.model import Backward
from tensorlens.records.reference import Difference
from tensorlens.records.report import Diagnostic

BEYOND_COPIES = (
    "unproven: `--reference` keeps copies of what autograd saves, and copies do not show how a change that was never "
    "recorded should count"
)
UNPROVEN = "unproven: run with `--reference` to compare the gradients with those of a second run that keeps copies"
DIFFERS = "compared: "
NOT_CONFIRMED = "not confirmed: a second run with copies of what autograd saved has the same gradients in this pass"
_SHOWN = 3  # values of a gradient that a note shows


def proof_notes(facts: TraceIndex, backward: Backward | None, tensors: Iterable[int] = ()) -> tuple[str, ...]:
    """Writes the notes that say whether the second run has other gradients in a pass.

    The note gives both values of the gradient that differs most, or says that the gradients are not confirmed to be
    wrong, or why nothing is compared.
    `tensors` are the leaves in question; without them, all leaves of the pass are.
    """
    reference, wanted = facts.trace.reference, frozenset(tensors)
    if reference is None:
        return (UNPROVEN,)
    if backward is None:
        return ()
    if backward.index not in reference.compared:
        return (f"unproven: {reference.reason or 'the second run has no record of this pass'}",)
    differences = [
        d for d in reference.differences if d.backward == backward.index and (not wanted or d.tensor in wanted)
    ]
    if not differences:
        return (NOT_CONFIRMED,)
    more = len(differences) - 1
    others = f"; {more} more gradient{'s' if more > 1 else ''} of this pass differ{'' if more > 1 else 's'} too"
    return (f"{DIFFERS}{difference_text(facts, _worst(differences))}{others if more else ''}",)


def _worst(differences: list[Difference]) -> Difference:
    return max(differences, key=lambda difference: difference.relative if isfinite(difference.relative) else -1.0)


def downgrade_unconfirmed(diagnostic: Diagnostic) -> Diagnostic:
    """Turns a warning into a note if the second run has the same gradients."""
    unconfirmed = diagnostic.severity == "warning" and NOT_CONFIRMED in diagnostic.notes
    return replace(diagnostic, severity="note") if unconfirmed else diagnostic


def difference_text(facts: TraceIndex, difference: Difference) -> str:
    """Describes a gradient: its value, that of the second run, and the difference."""
    name = named(facts, difference.tensor, difference.backward)
    got, right = values_text(difference, difference.got), values_text(difference, difference.right)
    if not difference.right:
        return f"the gradient of {name} is {got}, and None in a second run with copies"
    if not difference.got:
        return f"the gradient of {name} is None, and {right} in a second run with copies"
    relative = f" (a difference of up to {100 * difference.relative:.3g} %)" if isfinite(difference.relative) else ""
    return f"the gradient of {name} is {got}, and {right} in a second run with copies{relative}"


def values_text(difference: Difference, values: tuple[float, ...]) -> str:
    """Writes the values of a gradient that are shown, with dots for those that are left out."""
    shown = [f"{value:.4g}" for value in values[:_SHOWN]]
    if difference.start:
        shown.insert(0, "...")
    if difference.start + min(len(values), _SHOWN) < difference.values:
        shown.append("...")
    return f"[{', '.join(shown)}]"
