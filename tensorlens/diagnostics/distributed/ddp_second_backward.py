"""Finds the cause of `ddp-second-backward`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.averaging import used_between_passes
from tensorlens.diagnostics.shared.ranked_facts import RankedDiagnostic, RankedFacts, UnaveragedFacts
from tensorlens.diagnostics.shared.wording import fix
from tensorlens.records.report import Fix, Label

_WHY = "`DistributedDataParallel` averages in the first backward pass after a forward pass through it, and not again"


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports gradients to which a backward pass added after they had been averaged."""
    for each in ranks.unaveraged("second pass"):
        yield _second_pass(each)
    for each in ranks.unaveraged("checkpoints"):
        yield _checkpoints(each)


def _second_pass(unaveraged: UnaveragedFacts) -> RankedDiagnostic:
    facts, (forward, first, second) = unaveraged.facts, unaveraged.found.passes
    added = facts.label("accumulated_here", second, "what this pass adds is not averaged")
    labels = [
        added,
        facts.label("called_here", forward, "the last forward pass through the wrapper"),
        facts.label("accumulated_here", first, "this pass averages the gradients") if first != second else None,
    ]
    advice = "run each forward pass through the wrapper, and its backward pass before the next one"
    if used_between_passes(facts, unaveraged.found) is False:
        advice = "add the losses, and call `backward` once on the sum"
    return _report(unaveraged, labels, fix(advice, place=None if added is None else added.span))


def _checkpoints(unaveraged: UnaveragedFacts) -> RankedDiagnostic:
    facts, passes = unaveraged.facts, unaveraged.found.passes
    last = facts.label("called_here", passes[-1], "its own backward pass adds what is not averaged")
    labels = [last, facts.label("called_here", passes[0], "its own backward pass is the first")]
    advice = "pass `use_reentrant=False` to these checkpoints: they then run in the one backward pass"
    return _report(unaveraged, labels, fix(advice, place=None if last is None else last.span))


def _report(unaveraged: UnaveragedFacts, labels: list[Label | None], advice: Fix) -> RankedDiagnostic:
    cause = f": a second backward pass added to {'it' if unaveraged.is_one else 'them'}"
    return unaveraged.diagnostic("ddp-second-backward", cause, _WHY, labels, (advice,))
