"""Finds the cause of `ddp-models-differ`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.models import ModelDifference, model_differences
from tensorlens.analysis.ranks.replicas import Replica
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import FLAG_SETS
from tensorlens.diagnostics.shared.optimizers import born, listed
from tensorlens.diagnostics.shared.ranked_facts import RankedDiagnostic, RankedFacts, wrapped_label
from tensorlens.diagnostics.shared.rejected import rejected_calls
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic, Label

_MOST_LABELS = 3
_WHY = "`DistributedDataParallel` pairs the parameters of all ranks by their places, and averages each pair"


def find(ranks: RankedFacts) -> Iterator[RankedDiagnostic]:
    """Reports how the modules differ that ranks have wrapped."""
    for group in ranks.groups:
        for found in model_differences(group):
            yield RankedDiagnostic(_report(ranks, found), (found.other.rank, found.one.rank))


def find_in_rank(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports that the module of this rank was rejected. How it differs, the traces of all ranks show."""
    for rejected in rejected_calls(facts, "ddp-models-differ"):
        yield finding(
            "ddp-models-differ",
            rejected.severity,
            "`DistributedDataParallel` was given a module with other parameters than on another rank",
            _WHY,
            [facts.label("wrapped_here", rejected.site, "wrapped here")],
            fixes=(fix("make the same module on every rank"),),
            evidence={"message": rejected.message},
        )


def _report(ranks: RankedFacts, found: ModelDifference) -> Diagnostic:
    failed = any(ranks.facts[each.rank].trace.script.failure is not None for each in (found.one, found.other))
    advice = "make the same module on every rank, with the same parameters frozen"
    if found.kind == "order":
        advice = "let every rank make its layers in the same order"
    return finding(
        "ddp-models-differ",
        "error" if failed else "warning",
        _title(found),
        _WHY,
        [wrapped_label(ranks.facts[found.other.rank], found.other), *_labels(ranks, found)],
        fixes=(fix(advice),),
        evidence={"kind": found.kind, "parameters": list(found.names)},
    )


def _title(found: ModelDifference) -> str:
    one, other, first = found.one, found.other, found.names[0]
    names = listed([f"`{name}`" for name in found.names])
    if found.kind == "only here":
        return f"rank {other.rank} wraps {names}, and rank {one.rank} does not"
    if found.kind == "form":
        return (
            f"`{first}` is {found.form(one, first)} on rank {one.rank}, {found.form(other, first)} on rank {other.rank}"
        )
    if found.kind == "order":
        here, there = found.names
        return f"where rank {one.rank} has `{here}`, rank {other.rank} wraps `{there}`: the order of layers differs"
    require = "require" if len(found.names) > 1 else "requires"
    return f"{names} {require} grad on only one of ranks {one.rank} and {other.rank}"


def _labels(ranks: RankedFacts, found: ModelDifference) -> Iterator[Label | None]:
    """Labels where the parameters were made on each rank, or frozen."""
    if found.kind == "frozen":
        yield from (_frozen(ranks.facts[each.rank], each, found.names) for each in (found.one, found.other))
        return
    texts: dict[tuple[str, int], list[tuple[int, str]]] = {}
    sites: dict[tuple[str, int], tuple[TraceIndex, int]] = {}
    for replica, name in _made(found):
        tensor, facts = found.tensor(replica, name), ranks.facts[replica.rank]
        site = None if tensor is None else born(facts, tensor)
        span = facts.span(site)
        if site is not None and span is not None:
            sites.setdefault((span.file, span.line), (facts, site))
            shown = found.form(replica, name) if found.kind == "form" else f"`{name}`"
            text = "made on rank {} only" if found.kind == "only here" else f"{shown} on rank {{}}"
            texts.setdefault((span.file, span.line), []).append((replica.rank, text.format(replica.rank)))
    for place, (facts, site) in list(sites.items())[:_MOST_LABELS]:
        first_of_each = dict(reversed(texts[place]))
        yield facts.label("leaf_made_here", site, ", ".join(text for _, text in sorted(first_of_each.items())))


def _made(found: ModelDifference) -> Iterator[tuple[Replica, str]]:
    """Yields the parameters whose making is shown."""
    if found.kind == "order":
        yield from zip((found.one, found.other), found.names, strict=True)
        return
    for name in found.names[: 2 * _MOST_LABELS]:
        yield from ((replica, name) for replica in (found.one, found.other) if name in replica.wrapped.names)


def _frozen(facts: TraceIndex, replica: Replica, names: tuple[str, ...]) -> Label | None:
    """Labels the last call that set `requires_grad` of one of the parameters before the module was wrapped."""
    wrapped = replica.wrapped
    tensors = {wrapped.tensors[wrapped.names.index(name)] for name in names}
    calls = [
        each
        for each in facts.trace.events[: facts.trace.position(wrapped.index)]
        if isinstance(each, Call) and each.op in FLAG_SETS
        if each.inputs and each.inputs[0].tensor in tensors
    ]
    text = f"sets it on rank {replica.rank}"
    return facts.label("flag_changed_here", calls[-1].site, text) if calls else None
