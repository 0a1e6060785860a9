"""Finds the cause of `ddp-forward-by-module`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.averaging import unaveraged_forward
from tensorlens.diagnostics.shared.ranked_facts import RankedDiagnostic, RankedFacts, UnaveragedFacts
from tensorlens.diagnostics.shared.wording import fix

_CAUSE = ": no forward pass ran through `DistributedDataParallel`"
_WHY = "it averages gradients only in the backward pass after a forward pass of its own"


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports gradients of a pass before which no forward pass ran through the wrapper."""
    for each in ranks.unaveraged("no forward"):
        yield _report(each)


def _report(unaveraged: UnaveragedFacts) -> RankedDiagnostic:
    facts, backward = unaveraged.facts, unaveraged.found.passes[-1]
    call = unaveraged_forward(facts, unaveraged.found)
    site = None if call is None else call.site
    if site is not None and backward is not None:
        site = facts.site_in(facts.scope(backward), site) or site
    called = facts.label("called_here", site, "uses the module without the wrapper")
    kept = facts.label("accumulated_here", backward, "each rank keeps its own gradients")
    fixes = (fix("call the wrapper itself, not the module in it", place=None if called is None else called.span),)
    return unaveraged.diagnostic("ddp-forward-by-module", _CAUSE, _WHY, [called, kept], fixes)
