"""Finds parameters that got a gradient on some ranks of a distributed run, and none on others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.ranks.averaging import unaveraged
from tensorlens.analysis.ranks.branches import is_folded
from tensorlens.analysis.ranks.endings import place_of
from tensorlens.analysis.ranks.rank_texts import names_text, ranks_text
from tensorlens.analysis.ranks.replicas import replica_groups
from tensorlens.analysis.ranks.sharded_run import is_sharded
from tensorlens.records.merged_report import RankDifference
from tensorlens.records.model import Backward, Trace


def gradients(traces: Mapping[int, Trace]) -> Iterator[RankDifference]:
    """Yields the parameters that got no gradient on some ranks, although these completed as many backward passes."""
    yield from _replicas(traces)
    passes = {number: _completed(trace) for number, trace in traces.items() if not is_folded(trace)}
    most = max(passes.values(), default=0)
    whole = {number for number in passes if not is_sharded(traces[number])}
    known = {number: _parameters(traces[number]) for number in whole if most and passes[number] == most}
    if len(known) < 2:
        return
    missing: dict[tuple[int, ...], list[str]] = {}
    for name in dict.fromkeys(name for names in known.values() for name in names):
        without = tuple(number for number, names in known.items() if names.get(name) is False)
        if without and any(names.get(name) for names in known.values()):
            missing.setdefault(without, []).append(name)
    for without, names in missing.items():
        having = [number for number, known_names in known.items() if known_names.get(names[0])]
        text = f"no gradient on {ranks_text(list(without))}, but on {ranks_text(having)}: {names_text(names)}"
        yield RankDifference("gradient", text, without)


def _replicas(traces: Mapping[int, Trace]) -> Iterator[RankDifference]:
    """Yields what differs between replicas of one module without a known cause: gradients that a step finds, and
    buffers that the wrapper does not broadcast."""
    for group in replica_groups(traces):
        for kind, found, what in (
            ("gradient", group.gradient_difference if unaveraged(group) is None else None, "gradients"),
            ("parameters", group.buffer_difference, "values of buffers"),
        ):
            if found is not None:
                site = found.state(found.one).site
                place = "" if site is None else f" ({place_of(found.one.trace, found.one.trace.sites[site].span)})"
                when = f"at step {found.step}{place}" if found.step > 0 else "when the run ends"
                ranks = (found.one.rank, found.other.rank)
                text = f"{ranks_text(list(ranks))} have different {what} {when}: {names_text(found.names)}"
                yield RankDifference(kind, text, ranks)  # type: ignore[arg-type]


def _completed(trace: Trace) -> int:
    return sum(isinstance(event, Backward) and not event.failed for event in trace.events)


def _parameters(trace: Trace) -> dict[str, bool]:
    """Returns the names of the parameters, and whether a backward pass gave each a gradient."""
    names = names_of(trace)
    got = {
        gradient.tensor
        for event in trace.events
        if isinstance(event, Backward)
        for gradient in event.gradients
        if gradient.after is not None
    }
    parameters = [state for state in trace.end.states if state.is_leaf and state.requires_grad]
    found: dict[str, bool] = {}
    for state in parameters:
        if trace.tensors[state.tensor].type == "Parameter":
            has = state.tensor in got or state.grad is not None
            found[names.display_name(state.tensor)] = has
    return found
