"""Finds the cause of `ddp-forward-in-no-sync`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.averaging import Unaveraged
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.ranked_facts import (
    RankedDiagnostic,
    RankedFacts,
    both_ranks,
    gradient_title,
    step_label,
    wrapped_label,
)
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.report import Diagnostic


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports gradients whose last forward pass ran while the wrapper did not synchronise."""
    for facts, found in ranks.unaveraged("no sync"):
        yield RankedDiagnostic(_report(facts, found), both_ranks(found.difference))


def _report(facts: TraceIndex, found: Unaveraged) -> Diagnostic:
    forward, backward = found.passes
    called = facts.label("called_here", forward, "runs while synchronisation is off")
    return finding(
        "ddp-forward-in-no-sync",
        "warning",
        f"{gradient_title(found)}: the last forward pass before the step ran under `no_sync`",
        "whether a backward pass averages gradients is decided in the forward pass before it",
        [
            called,
            facts.label("accumulated_here", backward, "each rank keeps its own gradients"),
            step_label(facts, found),
            wrapped_label(facts, found.replica),
        ],
        fixes=(
            fix(
                "run the last forward pass before each step outside of `no_sync`, with its backward pass",
                place=None if called is None else called.span,
            ),
        ),
        evidence={"parameters": list(found.names), "step": found.difference.step},
    )
