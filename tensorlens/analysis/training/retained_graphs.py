"""Finds tensors that live longer than the training step that made them, and keep their graphs alive.

The trace lists the tensors that were alive at the end and at a few steps. In between, a tensor was certainly alive
until the last call that used it, as when a list of losses is summed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

from tensorlens.analysis.graph_search import GraphSearch
from tensorlens.analysis.lineage import ancestry, backward_reaches
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call

MIN_STEPS = 3  # steps whose graphs are alive at once
MANY = 5  # so many such steps are enough, whatever their share of the run
MAX_PASSES = 50
_COPIES = (
    "Alias", "AsStrided", "Cat", "Clone", "Copy", "Expand", "Index", "Permute", "Reshape", "Select", "Slice", "Split",
    "Squeeze", "Stack", "T", "ToCopy", "Transpose", "Unbind", "Unsqueeze", "View",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RetainedGraphs:
    """The results of one line, made in many steps, that were alive at the same time."""

    calls: tuple[Call, ...]  # one for each step, in order
    alive: int  # the largest number of earlier steps whose tensor was alive at once
    passed: bool  # a backward pass went through the graph
    in_gradient: bool  # a pass with `create_graph` did: perhaps only the graph of a gradient keeps the tensor alive


class _Steps:
    """Finds the steps of a run: optimizer steps or, without an optimizer, backward passes that freed their graph."""

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
        """The last event at which each tensor with a graph was certainly alive."""
        last: dict[int, int] = {}
        for alive in self._facts.trace.inspection.held:
            last.update(dict.fromkeys(alive.tensors, alive.index))
        for call in self._facts.calls:
            for access in call.inputs:
                if last.get(access.tensor, 0) < call.index:
                    last[access.tensor] = call.index
        end = self._facts.events[-1].index + 1 if self._facts.events else 0
        last.update({state.tensor: end for state in self._facts.trace.end.states if not state.is_leaf})
        return last

    def most_alive(self, calls: dict[int, Call]) -> int:
        """Returns the largest number of results that were alive at once in a later step than their own.

        `calls` maps each step to the call that made its result.
        """
        changes: dict[int, int] = defaultdict(int)
        for made, call in calls.items():
            changes[made + 1] += 1
            changes[self.step_of(self.last_seen[_made(call)]) + 1] -= 1
        return max(accumulate(changes[n] for n in sorted(changes)), default=0)


@lru_cache(maxsize=1)  # two findings ask
def retained_graphs(facts: TraceIndex) -> list[RetainedGraphs]:
    """Finds the lines whose results stay alive step after step, although no later step needs them.

    A result that is alive only as part of another's graph is left out.
    """
    retained: list[RetainedGraphs] = []
    for group in sorted(_groups(facts), key=lambda group: -group.calls[0].index):
        above = (
            call for other in retained for _, call in ancestry(facts, _made(other.calls[0]), other.calls[0].index + 1)
        )
        if group.calls[0] not in above:
            retained.append(group)
    return retained


def _groups(facts: TraceIndex) -> Iterator[RetainedGraphs]:
    steps = _Steps(facts)
    if len(steps.ends) < MIN_STEPS:
        return
    for made in _by_line(facts, steps).values():
        outlived = {number: call for number, call in made.items() if call is not None}
        alive = steps.most_alive(outlived)
        begins_late = 2 * min(outlived, default=0) > len(steps.ends)  # perhaps the last few results alone are kept
        if alive >= MIN_STEPS and (alive >= MANY or (2 * alive >= len(made) and not begins_late)):
            calls = tuple(outlived[number] for number in sorted(outlived))
            passed, needed = _passes(facts, steps, calls)
            if not needed and (passed or not _is_copy(facts, calls[0])):
                yield RetainedGraphs(calls, alive, passed, _is_in_gradient(facts, calls[-1]))


def _by_line(facts: TraceIndex, steps: _Steps) -> dict[object, dict[int, Call | None]]:
    """Maps each line and step to the call whose result outlives the step; None if the result does not."""
    by_line: dict[object, dict[int, Call | None]] = defaultdict(dict)
    for call in facts.calls:
        if call.mode != "grad" or call.within or len(call.outputs) != 1 or not call.states:
            continue
        number, state = _made(call), call.states[0]
        if state.requires_grad and not state.is_leaf and facts.tensor(number).created_by == call.index:
            made = steps.step_of(call.index)
            line = by_line[place_of(facts.trace.sites[call.site])]
            outlives = steps.step_of(steps.last_seen.get(number, 0)) > made and _has_graph(facts, number)
            line[made] = call if outlives else line.get(made)
    return by_line


def _made(call: Call) -> int:
    return call.outputs[0].tensor


def _has_graph(facts: TraceIndex, number: int) -> bool:
    """Returns whether a tensor kept its graph: `detach_()` removes it."""
    state = facts.state(number, facts.events[-1].index)
    return state is not None and state.requires_grad


def _passes(facts: TraceIndex, steps: _Steps, calls: tuple[Call, ...]) -> tuple[bool, bool]:
    """Returns whether a backward pass went through the graph of the results, and whether one of a later step did."""
    passed = False
    for call in {calls[0].index: calls[0], calls[len(calls) // 2].index: calls[len(calls) // 2]}.values():
        later = [b for b in facts.backwards if b.index > call.index and not b.failed]
        for backward in later[:MAX_PASSES]:
            if backward_reaches(facts, backward, call):
                passed = True
                if steps.step_of(backward.index - 1) > steps.step_of(call.index):
                    return passed, True
    return passed, False


def _is_in_gradient(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the graph of a gradient may have saved the result of `call`.

    It may if a backward pass with `create_graph` went through the call, or made it.
    """
    passes = [b for b in facts.backwards if b.create_graph and not b.failed and b.index > call.index]
    return any(b.started <= call.index or backward_reaches(facts, b, call) for b in passes[:MAX_PASSES])


def _is_copy(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the result of `call` only copies leaves, like a snapshot of a parameter.

    A slice of a prediction is none: the prediction was computed.
    """
    search, waiting = GraphSearch(facts), [call]
    for made in waiting:
        if made.nodes[1] == made.nodes[0] or made.within or not made.states:
            continue
        if not (made.states[0].grad_fn or "").startswith(_COPIES):
            return False
        for access in made.inputs:
            waiting += search.new_calls(access.tensor, made.index)
    return True


def _frees(backward: Backward) -> bool:
    return not (backward.failed or backward.retain_graph or backward.create_graph or backward.inputs)
