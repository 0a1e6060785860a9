"""Parameters that no gradient ever came to: those that an optimizer steps, and where their way to the loss ends."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tensorlens.analysis.lineage import MAX_CALLS, Cut, ancestry
from tensorlens.analysis.trace_index import OPS_ENTERING_TORCH, OPS_LEAVING_TORCH, TraceIndex
from tensorlens.analysis.training.timeline import DATA_SET, Training
from tensorlens.records.model import Access, Backward, Call
from tensorlens.records.observations import Step

MAX_PASSES = 4  # backward passes that are followed back, each from another line
Kind = Literal["cut", "late", "swallowed", "unused"]
_Place = tuple[Call, int, Kind]  # the call where a way ends, and the tensor that it leaves behind


@dataclass(frozen=True, slots=True)
class PathEnd:
    """A parameter without a gradient. `cut` is where its way to the root of `backward` ends: a call took the value out
    of the graph, or used it before it required grad, or had it as an input and gave it no gradient, or made what no
    root was computed from."""

    number: int
    backward: Backward
    cut: Cut
    kind: Kind


def parameters_without_gradient(training: Training) -> dict[int, Step]:
    """The parameters that required grad whenever an optimizer stepped them, never had a gradient, and that nothing
    else changed: each with the last such step."""
    found: dict[int, Step] = {}
    if training.is_hidden:
        return found
    wanted = training.stepped - training.had_gradient
    for step in training.steps:
        for number in wanted.intersection(step.parameters):
            if training.facts.requires_grad(number, step.index - 1):
                found[number] = step
            else:
                wanted.discard(number)
                found.pop(number, None)
    started = min([b.index for b in training.facts.backwards] + [step.index for step in training.steps], default=0)
    return {n: step for n, step in found.items() if not changed_since(training, n, started)}


def changed_since(training: Training, number: int, index: int) -> bool:
    """Whether something other than an optimizer changed a parameter: an average that follows, a copy that is loaded."""
    facts = training.facts
    places = facts.storages_of(number)
    later = [call for call in facts.calls if call.index > index]
    if any(call.op == DATA_SET and call.inputs[0].tensor == number for call in later):
        return True
    return any(facts.storage_of(write.tensor, call.index) in places for call in later for write in call.writes)


def path_ends(training: Training, numbers: set[int]) -> Iterator[PathEnd]:
    """For each of the tensors that a backward pass was computed from, where its way to the root ends."""
    facts, left = training.facts, set(numbers)
    lines: set[int] = set()
    for backward in facts.backwards:
        if backward.failed or backward.site in lines or backward.op == "autograd.grad":
            continue
        lines.add(backward.site)
        for found in _followed(training, backward, left):
            left.discard(found.number)
            yield found
        if not left or len(lines) >= MAX_PASSES:
            return


def unused_path_ends(training: Training, numbers: set[int]) -> Iterator[PathEnd]:
    """For each of the tensors that something was computed from, and no root of a backward pass: where that ends."""
    facts = training.facts
    made_of: dict[int, frozenset[int]] = {number: frozenset((number,)) for number in numbers}
    ends: dict[int, _Place] = {}
    for call in facts.calls:
        sources = [access.tensor for access in call.inputs if access.tensor in made_of and not call.within]
        leaves = call.op in OPS_LEAVING_TORCH and any(facts.requires_grad(number, call.index) for number in sources)
        if not sources or not (leaves or call.nodes[1] > call.nodes[0]):
            continue
        reached = frozenset[int]().union(*(made_of[number] for number in sources))
        made_of.update((access.tensor, reached) for access in call.outputs if access.tensor not in numbers)
        for number in reached:
            if leaves or number not in ends or ends[number][2] == "unused":
                ends[number] = call, sources[0], "cut" if leaves else "unused"
    taken = _taken_out(facts, {access.tensor for call, _, kind in ends.values() for access in call.outputs})
    for number, (call, source, kind) in ends.items():
        backward = next((b for b in facts.backwards if b.index > call.index and not b.failed), None)
        if backward is not None and _computed(facts, backward):
            out = next((taken[a.tensor] for a in call.outputs if a.tensor in taken), None)
            if kind == "unused" and out is not None and _brought_back(facts, backward, out.left_torch):
                yield PathEnd(number, backward, replace(out, leaf=number), "cut")
            else:
                yield PathEnd(number, backward, Cut(call, source, number), kind)


def _taken_out(facts: TraceIndex, ends: set[int]) -> dict[int, Cut]:
    """By tensor with a history: the call that gave its values without it, if these then left torch."""
    constant: dict[int, Cut] = {}
    found: dict[int, Cut] = {}
    for call in facts.calls:
        source = call.inputs[0].tensor if call.inputs and not call.within else None
        cut = constant.get(source or 0)
        if cut is None and source in ends and call.op not in OPS_LEAVING_TORCH:
            cut = Cut(call, source, None)
        if cut is None or cut.source is None:
            continue
        if call.op in OPS_LEAVING_TORCH:
            found[cut.source] = replace(cut, left_torch=call)
        else:
            made = (access.tensor for access in call.outputs)
            constant.update((number, cut) for number in made if not facts.requires_grad(number, call.index))
    return found


def _brought_back(facts: TraceIndex, backward: Backward, left: Call | None) -> bool:
    """Whether a root was computed from what came into torch after some values had left it."""
    above = (call for root in backward.roots for _, call in ancestry(facts, root.tensor, backward.index))
    return any(left is not None and call.index > left.index and call.op in OPS_ENTERING_TORCH for call in above)


def _followed(training: Training, backward: Backward, numbers: set[int]) -> list[PathEnd]:
    """Back from the roots by every call, recorded or not; the first cut on a way counts. A call is followed once for
    each end that a way below it has, not once for each of its results: it may have thousands."""
    facts, trained = training.facts, training.stepped & training.had_gradient
    found: dict[int, PathEnd] = {}
    queue: deque[tuple[int, int, _Place | None]] = deque()
    queue.extend((root.tensor, backward.index, None) for root in _computed(facts, backward))
    seen: set[tuple[int, int]] = set()
    followed: set[tuple[int, bool, tuple[int, Kind] | None]] = set()
    moves = _moves(facts)
    while queue and len(seen) < MAX_CALLS:
        number, limit, end = queue.popleft()
        moved = [call for call in moves.get(number, ()) if call.index < limit]
        for call in (*moved, *facts.producers(number, limit)):
            if (number, call.index) in seen or call.within or (number in trained and not _from_graph(facts, call)):
                continue
            seen.add((number, call.index))
            kept = _is_kept(facts, number, call)
            way = call.index, kept, end and (end[0].index, end[2])
            sources = () if way in followed else {access.tensor for access in call.inputs} - {number}
            followed.add(way)
            for source in sources:
                here = end or _cut_at(facts, source, call, kept, numbers)
                if source in numbers and (source not in found or found[source].kind == "swallowed"):
                    end_call, left_behind, kind = here or (call, source, "swallowed")
                    found[source] = PathEnd(source, backward, Cut(end_call, left_behind, source), kind)
                queue.append((source, call.index, here))
            if call.op.endswith(".apply") and call.nodes[1] > call.nodes[0]:
                break  # what a custom Function computed inside is its own affair
    return list(found.values())


def _from_graph(facts: TraceIndex, call: Call) -> bool:
    """Whether a parameter was made of a computed value; of one that is trained itself, all else is how it began: a copy
    of another, an initialisation."""
    states = [facts.state(access.tensor, call.index - 1) for access in call.inputs]
    return call.op == "nn.Parameter" and any(s is not None and s.requires_grad and not s.is_leaf for s in states)


def _computed(facts: TraceIndex, backward: Backward) -> list[Access]:
    """The roots that have a history: a leaf has none to follow."""
    states = ((root, facts.state(root.tensor, backward.index - 1)) for root in backward.roots)
    return [root for root, state in states if state is None or not state.is_leaf]


def _moves(facts: TraceIndex) -> dict[int, list[Call]]:
    """By parameter: the assignments to `.data` that gave it its values."""
    found: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if call.op == DATA_SET and facts.tensor(call.inputs[0].tensor).type == "Parameter":
            found[call.inputs[0].tensor].append(call)
    return found


def _is_kept(facts: TraceIndex, number: int, call: Call) -> bool:
    """Whether the result of a call has a history."""
    state = facts.state(number, call.index)
    return state is not None and state.requires_grad and not state.is_leaf


def _cut_at(facts: TraceIndex, source: int, call: Call, kept: bool, numbers: set[int]) -> _Place | None:
    """The call, where it takes a value out of the graph: its input required grad and its result does not, or starts
    anew as a leaf."""
    required = facts.requires_grad(source, call.index - 1)
    if required and not kept:
        return call, source, "cut"
    if not required and source in numbers:
        return call, source, "late"
    return None
