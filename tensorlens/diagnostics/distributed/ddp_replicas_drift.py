"""Finds the cause of `ddp-replicas-drift`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.drift import Writes, had_equal_gradients, writes_before
from tensorlens.analysis.ranks.replicas import StateDifference
from tensorlens.diagnostics.shared.optimizers import listed
from tensorlens.diagnostics.shared.ranked_facts import RankedDiagnostic, RankedFacts, both_ranks, wrapped_label
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic, Label

_MOST_LABELS = 3


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports parameters that differ between replicas, unless different gradients were applied before."""
    for group in ranks.groups:
        found, gradients = group.value_difference, group.gradient_difference
        if found is not None and (gradients is None or 0 < found.step <= gradients.step):
            yield RankedDiagnostic(_report(ranks, found), both_ranks(found))


def _report(ranks: RankedFacts, found: StateDifference) -> Diagnostic:
    writes = [writes_before(ranks.facts[each.rank], each, found) for each in (found.one, found.other)]
    names = listed([f"`{name}`" for name in found.names])
    has = "have" if len(found.names) > 1 else "has"
    when = f"before step {found.step}" if found.step > 0 else f"after step {-found.step}, when the run ends"
    labels, decided = _labels(ranks, writes)
    title = f"{names} {has} other values on rank {found.other.rank} than on rank {found.one.rank} {when}"
    facts = ranks.facts[found.other.rank]
    state = found.state(found.other)
    stepped = facts.label("needed_here", state.site, f"step {found.step} changes replicas that differ")
    by_step = decided is not None and (decided.within or decided.op).endswith(".step") and had_equal_gradients(found)
    why = "`DistributedDataParallel` makes replicas equal once, and then only gives them equal gradients"
    if by_step:
        why += ", which this step does not apply alike: its learning rate or its state differs"
    place = labels[0].span if labels else None
    return finding(
        "ddp-replicas-drift",
        "warning",
        title,
        why,
        [*labels, stepped, wrapped_label(facts, found.other)],
        fixes=(
            fix("give every rank the same optimizer, with the same options", place=place)
            if by_step
            else fix("make this change before the module is wrapped, or make it alike on every rank", place=place),
        ),
        evidence={"parameters": list(found.names), "step": found.step},
    )


def _labels(ranks: RankedFacts, writes: list[Writes]) -> tuple[list[Label], Call | None]:
    """Labels the lines that only one rank ran, or else those that may have written other values. Also returns the only
    call that can have made the difference, if there is one."""
    one, other = writes
    both = [place for place in one.calls if place in other.calls]
    alone = [
        (mine, place) for mine, theirs in ((one, other), (other, one)) for place in mine.calls if place not in both
    ]
    complete = one.is_complete and other.is_complete
    shown = alone or [(one, place) for place in both]
    found: list[Label] = []
    for mine, place in shown[:_MOST_LABELS]:
        facts, call = ranks.facts[mine.rank], mine.calls[place]
        text = f"only rank {mine.rank} changes it here" if alone else "may write other values on each rank"
        if not alone and complete and len(both) == 1:
            text = "writes other values on each rank"
        label = facts.label("modified_here", call.site, text, call.index)
        found += [] if label is None else [label]
    decided = one.calls[both[0]] if complete and not alone and len(both) == 1 else None
    return found, decided
