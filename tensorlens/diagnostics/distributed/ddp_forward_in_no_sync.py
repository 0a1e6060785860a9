"""Finds the cause of `ddp-forward-in-no-sync`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.diagnostics.shared.ranked_facts import RankedDiagnostic, RankedFacts, UnaveragedFacts
from tensorlens.diagnostics.shared.wording import fix

_CAUSE = ": the last forward pass before the step ran under `no_sync`"
_WHY = "whether a backward pass averages gradients is decided in the forward pass before it"
_ADVICE = "run the last forward pass before each step outside of `no_sync`, with its backward pass"


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports gradients whose last forward pass ran while the wrapper did not synchronise."""
    for each in ranks.unaveraged("no sync"):
        yield _report(each)


def _report(unaveraged: UnaveragedFacts) -> RankedDiagnostic:
    facts, (forward, backward) = unaveraged.facts, unaveraged.found.passes
    called = facts.label("called_here", forward, "runs while synchronisation is off")
    kept = facts.label("accumulated_here", backward, "each rank keeps its own gradients")
    fixes = (fix(_ADVICE, place=None if called is None else called.span),)
    return unaveraged.diagnostic("ddp-forward-in-no-sync", _CAUSE, _WHY, [called, kept], fixes)
