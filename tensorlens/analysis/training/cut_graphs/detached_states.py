"""Finds lines that detach a recurrent state at each step of a loop, although one pass goes through all steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.code_around import loop_around_line
from tensorlens.analysis.naming.variables import assigned_in, read_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.cut_graphs.step_loops import is_one_loop
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above, recorded_from
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_CUTS = frozenset(("Tensor.detach", "torch.detach", "Tensor.data.__get__"))
_PARTS = frozenset("getitem select unbind narrow split chunk".split())
_EACH_STEP = frozenset("embedding float to unsqueeze squeeze dropout linear".split())
_SUMS = frozenset("add radd iadd sub rsub isub mul rmul imul div truediv addcmul addcdiv lerp where".split())
_MAX_LOOKUPS = 4
_MIN_STEPS = 3
_MOST_STEPS = 1_000
_MOST_STATES = 6  # that one line cuts in a step


@dataclass(frozen=True, slots=True)
class DetachedState:
    """A line that cuts each step of a loop off from the one before."""

    cut: Call
    backward: Backward
    count: int  # steps that the line cuts: in the graph of one pass, or since the pass before
    is_read_last: bool = False  # the loss is computed from the last step only


def detached_states(training: Training) -> Iterator[DetachedState]:
    """Yields these lines, each once.

    A loop that feeds back a detached output, while its state keeps the graph, is left out.
    """
    facts, reported = training.facts, set[int]()
    cuts = [call for call in facts.calls if call.op in _CUTS and len(call.inputs) == 1 and not call.within]
    cuts = [call for call in cuts if facts.requires_grad(call.inputs[0].tensor, call.index)]
    sites = {call.site for call in cuts}
    if len(cuts) < _MIN_STEPS:
        return
    for backward in examined_passes(facts):
        if sites <= reported:
            return
        above = {call.index: call for call in recorded_above(facts, backward)}
        read = {access.tensor for call in above.values() for access in call.inputs}
        made = {access.tensor for call in above.values() for access in call.outputs}
        by_site: dict[int, list[Call]] = defaultdict(list)
        for call in cuts:
            used = {access.tensor for access in call.outputs}
            if call.index < backward.index and call.inputs[0].tensor in made and used & read:
                by_site[call.site].append(call)
        for cut, count in _behind_last(facts, backward, cuts, (made, read)):
            if cut.site not in reported:
                reported.add(cut.site)
                yield DetachedState(cut, backward, count, is_read_last=True)
        for site, found in by_site.items():
            states = _states(facts, found) if site not in reported and len(found) <= _MOST_STEPS else 0
            if states:
                reported.add(site)
                yield DetachedState(found[0], backward, len(found) // states)


def _behind_last(
    facts: TraceIndex, backward: Backward, cuts: list[Call], graph: tuple[set[int], set[int]]
) -> Iterator[tuple[Call, int]]:
    """Yields the first cut of each line since the pass before, and how often it cut a state, if the graph has only the
    result of the last cut, and each step reads its own part of a sequence. Rounds that read the same value may be those
    of an iteration to a fixed point, which is differentiated at its end only."""
    made, read = graph
    since = max((each.index for each in facts.backwards if each.index < backward.started), default=-1)
    by_site: dict[int, list[Call]] = defaultdict(list)
    for call in cuts:
        if since < call.index < backward.started:
            by_site[call.site].append(call)
    for each in by_site.values():
        found = _without_last(each, made, read)
        if any(call.inputs[0].tensor in made for call in found) or not found or len(found) > _MOST_STEPS:
            continue
        last = len(each) - len(found)  # cuts at the end of the step that the graph has
        if any(_is_compared(facts, cut.inputs[0].tensor, backward) for cut in each[len(found) :]):
            continue  # a prediction that is the next input, as for the pushforward trick
        if not (is_one_loop(facts, each[-1]) if last else _goes_on(facts, found, backward, read)):
            continue
        for states in range(1, _MOST_STATES + 1):
            series = [found[first::states] for first in range(states)]
            steps = len(found) // states
            if steps < _MIN_STEPS or len(found) != steps * states or last not in (0, states):
                continue
            if not _repeats_after(facts, series[0], each[-1].index if last else backward.index):
                if all(_is_read_last(facts, cuts, read) for cuts in series):
                    yield series[0][0], len(each) // states
                    break


def _without_last(cuts: list[Call], made: set[int], read: set[int]) -> list[Call]:
    """Leaves out the cuts at the end of the last step: the graph has the state that they cut, and none of what they
    return."""
    count = len(cuts)
    while count and cuts[count - 1].inputs[0].tensor in made and cuts[count - 1].outputs[0].tensor not in read:
        count -= 1
    return cuts[:count]


def _is_compared(facts: TraceIndex, number: int, backward: Backward) -> bool:
    """Returns whether a loss compares a tensor itself with data of its shape."""
    shape = facts.tensor(number).shape
    calls = (call for call in recorded_above(facts, backward) if any(each.tensor == number for each in call.inputs))
    return any(
        facts.tensor(each.tensor).shape == shape and not facts.requires_grad(each.tensor, call.index - 1)
        for call in calls
        for each in call.inputs
    )


def _goes_on(facts: TraceIndex, cuts: list[Call], backward: Backward, read: set[int]) -> bool:
    """Returns whether the line that the last cut goes on with is one of the steps before. Another one may begin the
    part that is trained, after steps that only give a state."""
    users, lines = defaultdict[bool, set[object]](set), caller_lines(facts.trace)
    last, function = {access.tensor for access in cuts[-1].outputs}, facts.trace.sites[cuts[-1].site].function
    own = {access.tensor for cut in cuts[:-1] for access in cut.outputs}
    for call in facts.calls_between(cuts[0].index + 1, backward.index):
        for number in {access.tensor for access in call.inputs} & (last & read | own):
            is_near = facts.trace.sites[call.site].function == function
            line = call.site if is_near else lines.line(call)
            users[number in last] |= set() if line is None else {line}
    return bool(users[True] & users[False])


def _is_read_last(facts: TraceIndex, cuts: list[Call], read: set[int]) -> bool:
    """Returns whether the graph reads only the last of some cut states, each of which is computed from the one before
    and from another part of a sequence."""
    used = [{access.tensor for access in call.outputs} & read for call in cuts]
    return bool(used[-1]) and not any(used[:-1]) and _reads_parts(facts, cuts) and _cuts_all(facts, cuts)


def _repeats_after(facts: TraceIndex, cuts: list[Call], end: int) -> bool:
    """Returns whether a line of a step runs more often between the last cut and event `end` than in the step before:
    then the graph has more than one step."""
    step = [call.site for call in facts.calls_between(cuts[-2].index + 1, cuts[-1].index - 1)]
    rest = [call.site for call in facts.calls_between(cuts[-1].index + 1, end)]
    return any(rest.count(site) > step.count(site) for site in {*step} & {*rest})


def _reads_parts(facts: TraceIndex, cuts: list[Call]) -> bool:
    """Returns whether each step reads another part of one tensor, which shares a size with the state: that of rows.
    A part that is only added, or a factor, may be noise."""
    bases, parts = list[set[int]](), list[set[int]]()
    for before, cut in pairwise(cuts):
        sizes = set(facts.tensor(cut.inputs[0].tensor).shape) - {1}
        step = list(recorded_from(facts, [(cut.inputs[0].tensor, cut.index)]))
        calls = [call for call in step if call.index > before.index and op_name(call) not in _SUMS]
        read = {access.tensor for call in calls for access in call.inputs}
        taken = {number: made for number in read if (made := _part(facts, number)) is not None}
        own = {number: made for number, made in taken.items() if sizes & set(facts.tensor(number).shape)}
        bases.append({made.inputs[0].tensor for made in own.values()})
        parts.append(set(own))
    return bool(set.intersection(*bases)) and all(not one & other for one, other in pairwise(parts))


def _part(facts: TraceIndex, number: int) -> Call | None:
    """Returns the call that took a tensor out of a larger one, apart from a look-up or a layer behind it."""
    for _ in range(_MAX_LOOKUPS):
        made = facts.creator(number)
        if made is None or not made.inputs:
            return None
        source = made.inputs[0].tensor
        if op_name(made) in _PARTS:
            is_smaller = prod(facts.tensor(source).shape) > prod(facts.tensor(number).shape)
            return made if is_smaller and _varies(facts, made) else None
        if op_name(made) not in _EACH_STEP:
            return None
        number = made.inputs[-1].tensor if op_name(made) == "embedding" else source
    return None


def _varies(facts: TraceIndex, taking: Call) -> bool:
    """Returns whether a call takes several parts, or the source writes its place by a variable of the loop."""
    node, span = facts.node_at(taking.site), facts.span(taking.site)
    if len(taking.outputs) > 1 or span is None or node is None:
        return len(taking.outputs) > 1
    loop = loop_around_line(facts, span.file, span.line)
    return len(taking.inputs) == 1 and loop is not None and bool(assigned_in(loop) & read_in(node))


def _states(facts: TraceIndex, cuts: list[Call]) -> int:
    """Returns how many states a line cuts in each step, as those of several layers; 0 if it does not cut each step."""
    for states in range(1, _MOST_STATES + 1):
        if len(cuts) % states == 0 and len(cuts) // states >= _MIN_STEPS:
            if all(_cuts_all(facts, cuts[first::states]) for first in range(states)):
                return states
    return 0


def _cuts_all(facts: TraceIndex, cuts: list[Call]) -> bool:
    """Returns whether each cut value was computed from the result of the cut before, and from nothing else of the
    loop before that cut. Steps that have no parameter in common are layers, each cut off to train by its own loss."""
    first, read = cuts[0].index, list[set[int]]()
    for before, cut in pairwise(cuts):
        calls = list(recorded_from(facts, [(cut.inputs[0].tensor, cut.index)]))
        results = {access.tensor for access in before.outputs}
        if not any(results & {access.tensor for access in call.inputs} for call in calls):
            return False
        if any(first < call.index < before.index for call in calls):
            return False
        if any(access.tensor == before.inputs[0].tensor for call in calls for access in call.outputs):
            return False
        if _repeats(facts, before, cut, {call.site for call in calls if call.index > before.index}):
            return False
        read.append(_read_from_outside(facts, calls, before))
    return any(one & other or not (one or other) for one, other in pairwise(read))


def _read_from_outside(facts: TraceIndex, calls: list[Call], before: Call) -> set[int]:
    """Returns the tensors with a graph that the calls of one step read and that none of them has made."""
    step = [call for call in calls if call.index > before.index]
    made = {access.tensor for call in step for access in call.outputs}
    read = {(access.tensor, call.index) for call in step for access in call.inputs if access.tensor not in made}
    return {number for number, index in read if facts.requires_grad(number, index - 1)}


def _repeats(facts: TraceIndex, before: Call, cut: Call, sites: set[int]) -> bool:
    """Returns whether one of some lines runs twice between two cuts, with another line in between: then these cuts are
    more than one step apart."""
    met, last = set[int](), -1
    for call in facts.calls_between(before.index + 1, cut.index - 1):
        if call.site != last and call.site in sites and call.site in met:
            return True
        met.add(call.site)
        last = call.site
    return False
