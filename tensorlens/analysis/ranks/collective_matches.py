"""Matches the collectives of the ranks of a distributed run: which is the first that differs, who was stopped inside
one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensorlens.analysis.ranks.endings import has_timed_out, last_line, place_of
from tensorlens.records.distributed import Collective
from tensorlens.records.limits import MAX_COLLECTIVES
from tensorlens.records.merged_report import RankDifference
from tensorlens.records.model import Span, Trace

_SAME_SHAPE = {"all_reduce", "broadcast", "reduce", "all_gather_into_tensor", "reduce_scatter_tensor"}
_STOPPED = ("timeout", "killed", "interrupted")
Group = tuple[int, ...]


def collectives(traces: Mapping[int, Trace]) -> Iterator[RankDifference]:
    """Yields, for each group, the first collective that its ranks do not start alike, and the ranks that were stopped
    inside one, with those whose record ends before it."""
    if any(trace.inspection.switches for trace in traces.values()):
        return  # a sampled run records some of them
    by_group: dict[Group, dict[int, list[Collective]]] = {}
    for number, trace in traces.items():
        for each in trace.inspection.collectives:
            by_group.setdefault(each.group, {}).setdefault(number, []).append(each)
    for group, started in by_group.items():
        if (mismatch := _mismatch(traces, started)) is not None:
            yield mismatch
        yield from _waiting(traces, group, started)


def _mismatch(traces: Mapping[int, Trace], started: Mapping[int, list[Collective]]) -> RankDifference | None:
    """Returns the first collective of a group that differs between the lowest rank and others."""
    base, *others = sorted(started)
    found: list[tuple[int, int]] = []  # position, rank
    for number in others:
        both = enumerate(zip(started[base], started[number], strict=False))
        found += [(place, number) for place, (one, other) in both if _what(one) != _what(other)][:1]
    if not found:
        return None
    position, number = min(found)
    texts = [_text(traces[each], started[each][position]) for each in (base, number)]
    text = f"collective {position + 1} of their group differs: rank {base} starts {texts[0]}, rank {number} {texts[1]}"
    spans = [_span(traces[each], started[each][position]) for each in (base, number)]
    return RankDifference("collective", text, (base, number), tuple(span for span in spans if span is not None))


def _waiting(
    traces: Mapping[int, Trace], group: Group, started: Mapping[int, list[Collective]]
) -> Iterator[RankDifference]:
    """Yields the ranks whose record ends inside a collective, with those whose record ends before it."""
    for number, own in sorted(started.items()):
        trace = traces[number]
        returned = {each.number for each in trace.inspection.returned}
        if any(len(each) > len(own) for each in started.values()):
            continue  # a rank that starts the next one has come out of this one, and so have all
        stopped = trace.script.outcome in _STOPPED and own[-1].number not in returned
        if not (stopped or _timed_out_in(trace, own[-1])) or _is_full(trace):
            continue
        absent = [
            other
            for other in group
            if other in traces and not _is_full(traces[other]) and len(started.get(other, ())) < len(own)
        ]
        text = f"the record of rank {number} ends inside {_text(trace, own[-1])}"
        for other in absent[:2]:
            line = last_line(traces[other])
            text += f"; that of rank {other} ends before it" + (f", at {place_of(traces[other], line)}" if line else "")
        span = _span(trace, own[-1])
        yield RankDifference("waiting", text, (number, *absent), () if span is None else (span,))


def _timed_out_in(trace: Trace, last: Collective) -> bool:
    """Returns whether a rank waited in its last collective until the time limit: the exception left that call."""
    number = trace.script.failure
    return number is not None and has_timed_out(trace) and trace.failures[number].site == last.site


def _is_full(trace: Trace) -> bool:
    return len(trace.inspection.collectives) >= MAX_COLLECTIVES


def _what(each: Collective) -> tuple[str, tuple[int, ...], str]:
    return (each.op, each.shape, each.dtype) if each.op in _SAME_SHAPE else (each.op, (), "")


def _text(trace: Trace, each: Collective) -> str:
    """Returns "`all_reduce` of [3] float32 at line 7"."""
    span = _span(trace, each)
    of = "" if not each.dtype else f" of {list(each.shape)} {each.dtype}"
    return f"`{each.op}`{of}" + ("" if span is None else f" at {place_of(trace, span)}")


def _span(trace: Trace, each: Collective) -> Span | None:
    return None if each.site is None else trace.sites[each.site].span
