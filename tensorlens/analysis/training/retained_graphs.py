"""Tensors that outlive the step that they were made in, with the graph that they were computed in.

A tensor was alive as long as something was still called with it, as when a list of losses is summed; at the end, and
at a few steps of the run, it is known which were.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from tensorlens.analysis.lineage import ancestry, backward_reaches
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call

MIN_STEPS = 3  # steps whose graphs are alive at once
MANY = 5  # of these, whatever share of the run they are
MAX_PASSES = 50
_COPIES = (
    "Alias", "AsStrided", "Cat", "Clone", "Copy", "Expand", "Index", "Permute", "Reshape", "Select", "Slice", "Split",
    "Squeeze", "Stack", "T", "ToCopy", "Transpose", "Unbind", "Unsqueeze", "View",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RetainedGraphs:
    """What one line made in many steps, and what of it was alive together."""

    calls: tuple[Call, ...]  # one of each step, in order
    alive: int  # the most steps, before the one that runs, whose tensor was alive
    passed: bool  # a backward pass had gone through it
    in_gradient: bool  # one with `create_graph` had: the graph of a gradient may be all that holds it


class _Steps:
    """The steps of a run: those of optimizers or, where none stepped, backward passes that freed their graph."""

    def __init__(self, facts: TraceIndex) -> None:
        self._facts = facts
        steps = {step.index for step in facts.trace.inspection.steps}
        within = [call.index for before, call in pairwise(facts.calls) if call.within and not before.within]
        passes = [b.index for b in facts.backwards if _frees(b)]
        self.ends = sorted(steps.union(within)) or passes

    def step_of(self, index: int) -> int:
        return bisect_right(self.ends, index)

    @cached_property
    def last_seen(self) -> dict[int, int]:
        """The index up to which each tensor with a graph was alive for certain."""
        found: dict[int, int] = {}
        for held in self._facts.trace.inspection.held:
            found.update(dict.fromkeys(held.tensors, held.index))
        for call in self._facts.calls:
            for access in call.inputs:
                found[access.tensor] = max(call.index, found.get(access.tensor, 0))
        end = self._facts.events[-1].index + 1 if self._facts.events else 0
        found.update({state.tensor: end for state in self._facts.trace.end.states if not state.is_leaf})
        return found

    def most_alive(self, calls: dict[int, Call]) -> int:
        """Of tensors by the step that made them: the most that were alive in one later step."""
        changes: dict[int, int] = defaultdict(int)
        for made, call in calls.items():
            changes[made + 1] += 1
            changes[self.step_of(self.last_seen[_made(call)]) + 1] -= 1
        return max(accumulate(changes[n] for n in sorted(changes)), default=0)


def retained_graphs(facts: TraceIndex) -> list[RetainedGraphs]:
    """What a line made, step after step, and what nobody needs any more while it lives. What lives because something
    else among it does is left out."""
    found: list[RetainedGraphs] = []
    for group in sorted(_groups(facts), key=lambda group: -group.calls[0].index):
        above = (
            call for other in found for _, call in ancestry(facts, _made(other.calls[0]), other.calls[0].index + 1)
        )
        if group.calls[0] not in above:
            found.append(group)
    return found


def _groups(facts: TraceIndex) -> Iterator[RetainedGraphs]:
    rounds = _Steps(facts)
    if len(rounds.ends) < MIN_STEPS:
        return
    for made in _by_line(facts, rounds).values():
        outlived = {number: call for number, call in made.items() if call is not None}
        alive = rounds.most_alive(outlived)
        if alive >= MIN_STEPS and (2 * alive >= len(made) or alive >= MANY):
            calls = tuple(outlived[number] for number in sorted(outlived))
            passed, needed = _passes(facts, rounds, calls)
            if not needed and (passed or not _is_copy(facts, calls[0])):
                yield RetainedGraphs(calls, alive, passed, _is_in_gradient(facts, calls[-1]))


def _by_line(facts: TraceIndex, rounds: _Steps) -> dict[object, dict[int, Call | None]]:
    """By line and step: the call whose result lives longer than the step, or None where none does."""
    found: dict[object, dict[int, Call | None]] = defaultdict(dict)
    for call in facts.calls:
        if call.mode != "grad" or call.within or len(call.outputs) != 1 or not call.states:
            continue
        number, state = _made(call), call.states[0]
        if state.requires_grad and not state.is_leaf and facts.tensor(number).created_by == call.index:
            made = rounds.step_of(call.index)
            line = found[place_of(facts.trace.sites[call.site])]
            outlives = rounds.step_of(rounds.last_seen.get(number, 0)) > made and _has_graph(facts, number)
            line[made] = call if outlives else line.get(made)
    return found


def _made(call: Call) -> int:
    return call.outputs[0].tensor


def _has_graph(facts: TraceIndex, number: int) -> bool:
    """Whether a tensor kept its graph: `detach_()` takes it away."""
    state = facts.state(number, facts.events[-1].index)
    return state is not None and state.requires_grad


def _passes(facts: TraceIndex, rounds: _Steps, calls: tuple[Call, ...]) -> tuple[bool, bool]:
    """Whether backward passes went through the graph of what was kept: in the step that made it, and in later ones."""
    passed = False
    for call in {calls[0].index: calls[0], calls[len(calls) // 2].index: calls[len(calls) // 2]}.values():
        later = [b for b in facts.backwards if b.index > call.index and not b.failed]
        for backward in later[:MAX_PASSES]:
            if backward_reaches(facts, backward, call):
                passed = True
                if rounds.step_of(backward.index - 1) > rounds.step_of(call.index):
                    return passed, True
    return passed, False


def _is_in_gradient(facts: TraceIndex, call: Call) -> bool:
    """Whether the graph of a gradient may have saved what `call` made: a pass with `create_graph` went through it or
    ran it."""
    passes = [b for b in facts.backwards if b.create_graph and not b.failed and b.index > call.index]
    return any(b.started <= call.index or backward_reaches(facts, b, call) for b in passes[:MAX_PASSES])


def _is_copy(facts: TraceIndex, call: Call) -> bool:
    """Whether nothing was computed on the way from the leaves, as in a snapshot of a parameter."""
    made = [call, *(inner for _, inner in ancestry(facts, _made(call), call.index))]
    recorded = [inner for inner in made if inner.nodes[1] > inner.nodes[0] and not inner.within and inner.states]
    return all((inner.states[0].grad_fn or "").startswith(_COPIES) for inner in recorded)


def _frees(backward: Backward) -> bool:
    return not (backward.failed or backward.retain_graph or backward.create_graph or backward.inputs)
