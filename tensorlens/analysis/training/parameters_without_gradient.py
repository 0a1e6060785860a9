"""Finds parameters that an optimizer steps and that never had a gradient, and where their path to the loss ends."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from tensorlens.analysis.lineage import MAX_DEEP, Cut, ancestry, graph_leaves
from tensorlens.analysis.plain_values import takes_no_value
from tensorlens.analysis.shown_numbers import is_only_shown
from tensorlens.analysis.trace_index import OPS_ENTERING_TORCH, OPS_LEAVING_TORCH, TraceIndex
from tensorlens.analysis.training.timeline import DATA_SET, LastChanges, Training
from tensorlens.records.model import Access, Backward, Call
from tensorlens.records.observations import Step

MAX_PASSES = 4  # backward passes followed back, each from a different line
Kind = Literal["cut", "late", "swallowed", "unused", "unasked"]
_End = tuple[Call, int, Kind]  # the call where a path ends, and the input of it that is on the path


@dataclass(frozen=True, slots=True)
class PathEnd:
    """The end of the path from a parameter without gradient to a root of `backward`.

    `kind` is what the call of `cut` did:
    - "cut": it took the value out of the graph.
    - "late": it used the parameter before that required grad.
    - "swallowed": it is recorded, and gave no gradient to this input.
    - "unused": it made a result that no root was computed from.
    - "unasked": only `autograd.grad()`, which is `backward` here, starts from its result, and asks for other gradients.
    """

    number: int  # of the parameter
    backward: Backward
    cut: Cut
    kind: Kind


def parameters_without_gradient(training: Training) -> dict[int, Step]:
    """Finds the parameters that an optimizer stepped and that never had a gradient, each with its last step.

    They required grad at every step, and nothing else changed them between the first pass and the last one.
    """
    last_steps: dict[int, Step] = {}
    if training.is_hidden:
        return last_steps
    wanted = training.stepped - training.had_gradient
    for step in training.steps:
        for number in wanted.intersection(step.parameters):
            if training.facts.requires_grad(number, step.index - 1):
                last_steps[number] = step
            else:
                wanted.discard(number)
                last_steps.pop(number, None)
    started = min([b.index for b in training.facts.backwards] + [step.index for step in training.steps], default=0)
    return {n: step for n, step in last_steps.items() if not changed_while_training(training, n, started)}


def moved_by_asked_gradients(training: Training) -> set[int]:
    """Returns the tensors whose gradients `autograd.grad()` has returned, and that a step of an optimizer then changes,
    as one that is given these gradients does."""
    facts = training.facts
    passes = (each for each in facts.backwards if each.op == "autograd.grad" and not each.failed)
    asked = {number for each in passes for number in each.inputs}
    steps = (call for call in facts.calls if call.within) if asked else ()
    return {write.tensor for call in steps for write in call.writes} & asked


def changed_since(training: Training, number: int, index: int) -> bool:
    """Returns whether a call after event `index` changed a parameter, as averaging or loading a state dict does."""
    return _is_changed(training, training.last_changes, number, index)


def changed_while_training(training: Training, number: int, index: int) -> bool:
    """Returns whether a call after event `index`, and before the last pass or step, changed a parameter."""
    return _is_changed(training, training.last_changes_in_training, number, index)


def _is_changed(training: Training, last: LastChanges, number: int, index: int) -> bool:
    changes = [last.by_data.get(number), *map(last.by_storage.get, training.facts.storages_of(number))]
    return any(change is not None and change > index for change in changes)


def path_ends(training: Training, numbers: set[int]) -> Iterator[PathEnd]:
    """Yields where the path to a root ends, for each of the tensors that a root was computed from.

    The passes that ran right before a step of the tensors' optimizers come first: their gradients are what a step uses.
    """
    facts, left = training.facts, set(numbers)
    lines, before = set[int](), _sites_before_steps(training, numbers)
    for backward in sorted(facts.backwards, key=lambda each: each.site not in before):
        if backward.failed or backward.site in lines or backward.op == "autograd.grad":
            continue
        lines.add(backward.site)
        for end in _follow(training, backward, left):
            left.discard(end.number)
            yield end
        if not left or len(lines) >= MAX_PASSES:
            return


def path_ends_before(training: Training, numbers: set[int], steps: list[Step]) -> Iterator[PathEnd]:
    """Yields where the path to a root ends, for each of the tensors that a root of the last pass before one of some
    steps was computed from."""
    passes = [each for each in training.facts.backwards if not each.failed and each.op != "autograd.grad"]
    indices = [each.index for each in passes]
    last = {passes[at - 1].site: passes[at - 1] for step in reversed(steps) if (at := bisect_left(indices, step.index))}
    left = set(numbers)
    for backward in list(last.values())[:MAX_PASSES]:
        for end in _follow(training, backward, left):
            left.discard(end.number)
            yield end


def ends_in(training: Training, backward: Backward, numbers: set[int]) -> list[PathEnd]:
    """Returns where the path to the roots of one pass ends, for each of the tensors that they were computed from."""
    return _follow(training, backward, numbers)


def _sites_before_steps(training: Training, numbers: set[int]) -> set[int]:
    """Returns the lines of the last pass before each step of an optimizer that holds one of the tensors."""
    passes = [each for each in training.facts.backwards if not each.failed]
    indices = [each.index for each in passes]
    steps = [step for step in training.steps if not numbers.isdisjoint(step.parameters)]
    return {passes[at - 1].site for step in steps if (at := bisect_left(indices, step.index))}


def unused_path_ends(training: Training, numbers: set[int]) -> Iterator[PathEnd]:
    """Yields where the path ends, for each of the tensors that calls used and that no root was computed from, but for
    those of `autograd.grad()`."""
    facts = training.facts
    if not numbers:
        return
    computed_from: dict[int, frozenset[int]] = {number: frozenset((number,)) for number in numbers}
    ends: dict[int, _End] = {}
    last = max((backward.index for backward in facts.backwards if not backward.failed), default=-1)
    for call in facts.calls:
        if call.index > last:
            break  # an evaluation after the training
        sources = [access.tensor for access in call.inputs if access.tensor in computed_from and not call.within]
        leaves = call.op in OPS_LEAVING_TORCH and any(facts.requires_grad(number, call.index) for number in sources)
        leaves = leaves and not is_only_shown(facts, call)
        if not sources or not (leaves or call.nodes[1] > call.nodes[0]):
            continue
        reached = frozenset[int]().union(*(computed_from[number] for number in sources))
        computed_from.update((access.tensor, reached) for access in call.outputs if access.tensor not in numbers)
        for number in reached:
            if leaves or number not in ends or ends[number][2] == "unused":
                ends[number] = call, sources[0], "cut" if leaves else "unused"
    taken = _taken_out(facts, {access.tensor for call, _, kind in ends.values() for access in call.outputs})
    unasked = _unasked(facts, numbers)
    for number, (call, source, kind) in ends.items():
        if kind == "unused" and number in unasked:
            yield PathEnd(number, unasked[number], Cut(call, source, number), "unasked")
            continue
        backward = next((b for b in facts.backwards if b.index > call.index and not b.failed), None)
        if backward is not None and _computed_roots(facts, backward):
            out = next((taken[a.tensor] for a in call.outputs if a.tensor in taken), None)
            if kind == "unused" and out is not None and _brought_back(facts, backward, out.left_torch):
                yield PathEnd(number, backward, replace(out, leaf=number), "cut")
            else:
                yield PathEnd(number, backward, Cut(call, source, number), kind)


def _unasked(facts: TraceIndex, numbers: set[int]) -> dict[int, Backward]:
    """Maps tensors to the last `autograd.grad()` that started from what is computed from them and did not ask for their
    gradients. One with a graph of its gradients is left out: a loss may be computed from these."""
    passes = {each.site: each for each in facts.backwards if each.op == "autograd.grad" and not each.failed}
    found: dict[int, Backward] = {}
    for each in passes.values():
        for root in each.roots if not each.create_graph else ():
            leaves = graph_leaves(facts, root.tensor, each.index) & numbers
            found.update(dict.fromkeys(leaves.difference(each.inputs), each))
    return found


def _taken_out(facts: TraceIndex, ends: set[int]) -> dict[int, Cut]:
    """Maps tensors to the call that detached their values, if these values left torch afterwards."""
    constant: dict[int, Cut] = {}
    cuts: dict[int, Cut] = {}
    for call in facts.calls if ends else ():
        source = call.inputs[0].tensor if call.inputs and not call.within else None
        cut = constant.get(source or 0)
        if cut is None and source in ends and call.op not in OPS_LEAVING_TORCH:
            cut = Cut(call, source, None)
        if cut is None or cut.source is None:
            continue
        if call.op in OPS_LEAVING_TORCH:
            cuts[cut.source] = replace(cut, left_torch=call)
        else:
            made = (access.tensor for access in call.outputs)
            constant.update((number, cut) for number in made if not facts.requires_grad(number, call.index))
    return cuts


def _brought_back(facts: TraceIndex, backward: Backward, left: Call | None) -> bool:
    """Returns whether a root was computed from values that entered torch after the call `left` took some out of it."""
    above = (call for root in backward.roots for _, call in ancestry(facts, root.tensor, backward.index))
    return any(left is not None and call.index > left.index and call.op in OPS_ENTERING_TORCH for call in above)


def _follow(training: Training, backward: Backward, numbers: set[int]) -> list[PathEnd]:
    """Follows the roots back through every call, recorded or not. The first cut on a path counts.

    Paths behind calls that take only a shape come last: a cut of values on another path counts before these.
    The inputs of a call are followed once for each end on the way to it, not once for each of its results, which may be
    thousands.
    """
    facts, trained = training.facts, training.stepped & training.had_gradient
    ends: dict[int, PathEnd] = {}
    queue: deque[tuple[int, int, _End | None]] = deque()
    queue.extend((root.tensor, backward.index, None) for root in _computed_roots(facts, backward))
    shapes: deque[tuple[int, int, _End | None]] = deque()
    seen: set[tuple[int, int]] = set()
    followed: set[tuple[int, bool, tuple[int, Kind] | None]] = set()
    new_calls, moves = facts.new_calls(), _data_assignments(facts)
    while (queue or shapes) and len(seen) < MAX_DEEP:
        number, limit, end = (queue or shapes).popleft()
        moved = _taken(moves.get(number), limit)
        for call in chain(moved, new_calls.before(number, limit)):
            if (number, call.index) in seen or call.within or (number in trained and not _from_graph(facts, call)):
                continue
            seen.add((number, call.index))
            in_graph = _has_history(facts, number, call)
            path = call.index, in_graph, end and (end[0].index, end[2])
            sources = () if path in followed else {access.tensor for access in call.inputs} - {number}
            followed.add(path)
            for source in sources:
                here = _end_at(facts, source, call, in_graph, numbers, end)
                if source in numbers and (source not in ends or _is_weak(ends[source], here)):
                    end_call, left_behind, kind = here or (call, source, "swallowed")
                    ends[source] = PathEnd(source, backward, Cut(end_call, left_behind, source), kind)
                (shapes if _takes_shape(here) else queue).append((source, call.index, here))
            if call.op.endswith(".apply") and call.nodes[1] > call.nodes[0]:
                break  # the calls inside a custom Function are not part of the graph
    return list(ends.values())


def _takes_shape(end: _End | None) -> bool:
    return end is not None and end[2] == "cut" and takes_no_value(end[0], end[1])


def _is_weak(end: PathEnd, other: _End | None) -> bool:
    """Returns whether another end of a path to the same tensor counts more."""
    shape = end.cut.source is not None and _takes_shape((end.cut.call, end.cut.source, end.kind))
    cuts_values = other is not None and other[2] != "swallowed" and not _takes_shape(other)
    return end.kind == "swallowed" or (shape and cuts_values)


def _from_graph(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call of `nn.Parameter` took a computed value.

    Other calls that make a trained parameter only give it its first values: a copy, an initialisation.
    """
    states = [facts.state(access.tensor, call.index - 1) for access in call.inputs]
    return call.op == "nn.Parameter" and any(s is not None and s.requires_grad and not s.is_leaf for s in states)


def _computed_roots(facts: TraceIndex, backward: Backward) -> list[Access]:
    """Returns the roots that are not leaves."""
    states = ((root, facts.state(root.tensor, backward.index - 1)) for root in backward.roots)
    return [root for root, state in states if state is None or not state.is_leaf]


def _taken(calls: deque[Call] | None, before: int) -> list[Call]:
    """Takes the calls before event `before` out of a queue."""
    taken: list[Call] = []
    while calls and calls[0].index < before:
        taken.append(calls.popleft())
    return taken


def _data_assignments(facts: TraceIndex) -> dict[int, deque[Call]]:
    """Maps parameters to the assignments to their `.data`, in order."""
    moves: dict[int, deque[Call]] = defaultdict(deque)
    for call in facts.calls:
        if call.op == DATA_SET and facts.tensor(call.inputs[0].tensor).type == "Parameter":
            moves[call.inputs[0].tensor].append(call)
    return moves


def _has_history(facts: TraceIndex, number: int, call: Call) -> bool:
    """Returns whether the result of a call has a history."""
    state = facts.state(number, call.index)
    return state is not None and state.requires_grad and not state.is_leaf


def _end_at(
    facts: TraceIndex, source: int, call: Call, in_graph: bool, numbers: set[int], end: _End | None
) -> _End | None:
    """Returns where a path ends that went through a call: the first cut on it.

    On a path without a cut, a custom Function may give no gradient, and the one nearest to the parameter does: the
    others get zeros.
    """
    if end is not None and end[2] != "swallowed":
        return end
    cut = _cut_at(facts, source, call, in_graph, numbers)
    if cut is None and call.op.endswith(".apply") and call.nodes[1] > call.nodes[0]:
        return call, source, "swallowed"
    return cut or end


def _cut_at(facts: TraceIndex, source: int, call: Call, in_graph: bool, numbers: set[int]) -> _End | None:
    """Returns the call as the end of a path: it took the value out of the graph, or used a parameter too early.

    It takes a value out of the graph if its input required grad and its result does not, or is a leaf. It uses a
    parameter too early if that does not require grad yet.
    """
    required = facts.requires_grad(source, call.index - 1)
    if required and not in_graph:
        return call, source, "cut"
    if not required and source in numbers:
        return call, source, "late"
    return None
