"""Finds the cause of `ddp-forward-by-module`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.averaging import Unaveraged, unaveraged_forward
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
    """Reports gradients of a pass before which no forward pass ran through the wrapper."""
    for facts, found in ranks.unaveraged("no forward"):
        yield RankedDiagnostic(_report(facts, found), both_ranks(found.difference))


def _report(facts: TraceIndex, found: Unaveraged) -> Diagnostic:
    backward = found.passes[-1]
    call = unaveraged_forward(facts, found)
    site = None if call is None else call.site
    if site is not None and backward is not None:
        site = facts.site_in(facts.scope(backward), site) or site
    called = facts.label("called_here", site, "uses the module without the wrapper")
    return finding(
        "ddp-forward-by-module",
        "warning",
        f"{gradient_title(found)}: no forward pass ran through `DistributedDataParallel`",
        "it averages gradients only in the backward pass after a forward pass of its own",
        [
            called,
            facts.label("accumulated_here", backward, "each rank keeps its own gradients"),
            step_label(facts, found),
            wrapped_label(facts, found.replica),
        ],
        fixes=(fix("call the wrapper itself, not the module in it", place=None if called is None else called.span),),
        evidence={"parameters": list(found.names), "step": found.difference.step},
    )
