"""Finds the cause of `ddp-second-backward`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.averaging import Unaveraged, used_between_passes
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
from tensorlens.records.report import Diagnostic, Fix, Label


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports gradients to which a backward pass added after they had been averaged."""
    for facts, found in ranks.unaveraged("second pass"):
        yield RankedDiagnostic(_second_pass(facts, found), both_ranks(found.difference))
    for facts, found in ranks.unaveraged("checkpoints"):
        yield RankedDiagnostic(_checkpoints(facts, found), both_ranks(found.difference))


def _second_pass(facts: TraceIndex, found: Unaveraged) -> Diagnostic:
    forward, first, second = found.passes
    added = facts.label("accumulated_here", second, "what this pass adds is not averaged")
    labels = [
        added,
        facts.label("called_here", forward, "the last forward pass through the wrapper"),
        facts.label("accumulated_here", first, "this pass averages the gradients") if first != second else None,
    ]
    advice = "run each forward pass through the wrapper, and its backward pass before the next one"
    if used_between_passes(facts, found) is False:
        advice = "add the losses, and call `backward` once on the sum"
    return _report(facts, found, labels, fix(advice, place=None if added is None else added.span))


def _checkpoints(facts: TraceIndex, found: Unaveraged) -> Diagnostic:
    last = facts.label("called_here", found.passes[-1], "its own backward pass adds what is not averaged")
    labels = [last, facts.label("called_here", found.passes[0], "its own backward pass is the first")]
    advice = "pass `use_reentrant=False` to these checkpoints: they then run in the one backward pass"
    return _report(facts, found, labels, fix(advice, place=None if last is None else last.span))


def _report(facts: TraceIndex, found: Unaveraged, labels: list[Label | None], advice: Fix) -> Diagnostic:
    them = "it" if len(found.names) == 1 else "them"
    return finding(
        "ddp-second-backward",
        "warning",
        f"{gradient_title(found)}: a second backward pass added to {them}",
        "`DistributedDataParallel` averages in the first backward pass after a forward pass through it, and not again",
        [*labels, step_label(facts, found), wrapped_label(facts, found.replica)],
        fixes=(advice,),
        evidence={"parameters": list(found.names), "step": found.difference.step},
    )
