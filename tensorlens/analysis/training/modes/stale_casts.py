"""Finds weights that autocast has cast before the steps of an optimizer, and uses again after them.

Autocast keeps these copies until its outermost region ends. A call that casts its weights records a node for each: one
that has fewer nodes by as many as it has weights takes copies that are there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import Moment, Training
from tensorlens.records.model import Call, Region

_LOW = frozenset(("bfloat16", "float16"))
_MIN_UPDATES = 2  # after one, two losses of a round may be meant to use the same weights
_MOST_LOOKS = 8  # at uses after an update, in one region


@dataclass(frozen=True, slots=True)
class StaleCast:
    """A call that uses copies of weights, the call that made them, and the updates of the weights between these."""

    region: Region
    made: Call
    used: Call
    weights: tuple[int, ...]
    updates: tuple[Moment, ...]  # of the first of the weights


@dataclass(frozen=True, slots=True)
class _Span:
    """The outermost region of autocast around some events."""

    entered: Region
    end: int


def stale_casts(training: Training) -> Iterator[StaleCast]:
    """Yields one for each line that uses such copies."""
    spans, reported = list(_spans(training.facts)), set[int]()
    uses = _uses(training) if spans else {}
    for span in spans:
        for number, calls in uses.items():
            place = bisect_left(calls, span.entered.index, key=_index)
            inside = calls[place : bisect_left(calls, span.end, key=_index)]
            if len(inside) > _MIN_UPDATES and inside[0].site not in reported:
                found = _found(training, span, number, inside)
                if found is not None:
                    reported |= {found.made.site, found.used.site}
                    yield found


def _index(call: Call) -> int:
    return call.index


def _spans(facts: TraceIndex) -> Iterator[_Span]:
    entered, depth = None, 0
    for event in facts.events:
        if isinstance(event, Region) and event.name == "autocast":
            entered = event if event.entering and not depth else entered
            depth = max(0, depth + (1 if event.entering else -1))
            if not depth and entered is not None:
                yield _Span(entered, event.index)
                entered = None
    if entered is not None:
        yield _Span(entered, facts.events[-1].index + 1)


def _uses(training: Training) -> dict[int, list[Call]]:
    """Returns the calls that use each trained leaf, but for those within a step."""
    uses = defaultdict[int, list[Call]](list)
    for call in training.facts.calls:
        if not call.within and call.outputs and not call.writes:
            for number in {access.tensor for access in call.inputs} & training.leaves:
                uses[number].append(call)
    return uses


def _found(training: Training, span: _Span, number: int, inside: list[Call]) -> StaleCast | None:
    """Looks at the first use of a weight after each update: it would have to cast the weight anew."""
    facts, made = training.facts, inside[0]
    moments = training.moments.get(number, ())
    updates = [each for each in moments if _is_update(each) and made.index < each.index < span.end]
    for place in range(_MIN_UPDATES, min(len(updates), _MOST_LOOKS) + 1):
        after = bisect_right(inside, updates[place - 1].index, key=_index)
        used = inside[after] if after < len(inside) else None
        if used is None or (place < len(updates) and used.index > updates[place].index):
            continue
        weights = _weights(facts, made, used)
        if number in weights and _takes_copies(facts, made, used, len(weights)):
            return StaleCast(span.entered, made, used, weights, tuple(updates[:place]))
    return None


def _is_update(moment: Moment) -> bool:
    """Returns whether a moment is a step, or an update by hand that uses the gradient."""
    event = moment.event
    return moment.kind == "update" and moment.fresh and not (isinstance(event, Call) and event.within)


def _weights(facts: TraceIndex, made: Call, used: Call) -> tuple[int, ...]:
    """Returns the tensors that both calls use in the same place, and that autocast keeps a copy of if it casts them."""
    return tuple(
        dict.fromkeys(
            one.tensor
            for one, other in zip(made.inputs, used.inputs, strict=False)
            if one.tensor == other.tensor
            and facts.tensor(one.tensor).dtype == "float32"
            and all(facts.is_leaf_requiring_grad(one.tensor, call.index) for call in (made, used))
        )
    )


def _takes_copies(facts: TraceIndex, made: Call, used: Call, count: int) -> bool:
    """Returns whether a call gives what another one gives, with as many nodes less as it has weights."""
    nodes = [call.nodes[1] - call.nodes[0] for call in (made, used)]
    if made.op != used.op or nodes[0] - nodes[1] != count or nodes[1] < 1:
        return False
    described = [_described(facts, call) for call in (made, used)]
    return described[0] == described[1] and facts.tensor(used.outputs[0].tensor).dtype in _LOW


def _described(facts: TraceIndex, call: Call) -> list[tuple[str, int, bool]]:
    """Returns what the number of nodes of a call may depend on: types, dimensions and flags of its tensors."""
    tensors = [(access.tensor, facts.tensor(access.tensor)) for access in (*call.inputs, *call.outputs)]
    return [(each.dtype, len(each.shape), facts.requires_grad(number, call.index)) for number, each in tensors]
