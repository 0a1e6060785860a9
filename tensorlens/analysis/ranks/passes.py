"""Compares the passes of ranks through one `DistributedDataParallel` wrapper: their inputs, and the parameters that
backward arrives at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensorlens.analysis.ranks.endings import place_of
from tensorlens.analysis.ranks.rank_texts import names_text, ranks_text
from tensorlens.analysis.ranks.replicas import Replica, ReplicaGroup, replica_groups
from tensorlens.records.distributed import ForwardInputs, HooksFired
from tensorlens.records.merged_report import RankDifference
from tensorlens.records.model import Span, Trace

_LEAST = 3  # different inputs of forward passes: one that is always the same may be meant


def passes(traces: Mapping[int, Trace]) -> Iterator[RankDifference]:
    """Yields the wrappers that got the same inputs on several ranks, and the parameters that backward arrived at on
    some ranks only."""
    for group in replica_groups(traces):
        if (same := _same_inputs(group)) is not None:
            yield same
        if group.is_alike and "find_unused_parameters" in group.replicas[0].options:
            yield from _arrivals(group)


def _same_inputs(group: ReplicaGroup) -> RankDifference | None:
    """Says that all ranks gave the model the same inputs in each noted pass, if inputs change between passes."""
    by_rank = [_inputs(each) for each in group.replicas]
    base = by_rank[0]
    alike = all(_values(other) == _values(base) for other in by_rank[1:])
    if not alike or not all(each.values for each in base.values()):
        return None
    if len({each.values for each in base.values()}) < _LEAST:
        return None
    replica, first = group.replicas[0], next(iter(base.values()))
    ranks = tuple(each.rank for each in group.replicas)
    given = f"{ranks_text(list(ranks))} gave the `DistributedDataParallel` model the same inputs"
    span = _span(replica, first.site)
    place = "" if span is None else f" (first at {place_of(replica.trace, span)})"
    return RankDifference(
        "inputs", f"{given} in {_compared(base, replica)}{place}", ranks, () if span is None else (span,)
    )


def _compared(base: Mapping[int, ForwardInputs], replica: Replica) -> str:
    """Returns "all 3 forward passes", "the 22 forward passes that were compared"."""
    if [*base] == [*range(1, len(base) + 1)] and len(base) < 20:
        return f"all {len(base)} forward passes"
    return f"the {len(base)} forward passes that were compared"


def _values(passes: Mapping[int, ForwardInputs]) -> dict[int, tuple[int, ...]]:
    return {number: each.values for number, each in passes.items()}


def _inputs(replica: Replica) -> dict[int, ForwardInputs]:
    number = replica.wrapped.number
    return {each.passed: each for each in replica.trace.inspection.forward_inputs if each.number == number}


def _arrivals(group: ReplicaGroup) -> Iterator[RankDifference]:
    """Yields the parameters that backward passes arrived at on some ranks only; equal sets of them once."""
    by_rank = {each.rank: _fired(each) for each in group.replicas}
    replica = group.replicas[0]
    common = sorted(set.intersection(*(set(each) for each in by_rank.values())))
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for number in common:
        missing: dict[tuple[int, ...], list[int]] = {}
        for position in sorted({n for each in by_rank.values() for n in each[number].missed}):
            without = tuple(rank for rank, each in by_rank.items() if position in each[number].missed)
            if len(without) < len(by_rank):
                missing.setdefault(without, []).append(position)
        for without, positions in missing.items():
            found.setdefault((without, tuple(positions)), []).append(number)
    for (without, missed), numbers in found.items():
        having = [each.rank for each in group.replicas if each.rank not in without]
        names = names_text([replica.wrapped.names[position] for position in missed])
        shower = next(each for each in group.replicas if each.rank in without)
        span = _span(shower, by_rank[shower.rank][numbers[0]].site)
        place = "" if span is None else f", first at {place_of(shower.trace, span)}"
        passed = f"in {len(numbers)} of {len(common)} backward passes{place}"
        text = f"backward arrived on {ranks_text(having)} only at {names}, {passed}"
        yield RankDifference("arrival", text, without, () if span is None else (span,))


def _fired(replica: Replica) -> dict[int, HooksFired]:
    number = replica.wrapped.number
    return {each.passed: each for each in replica.trace.inspection.fired if each.number == number}


def _span(replica: Replica, site: int | None) -> Span | None:
    return None if site is None else replica.trace.sites[site].span
