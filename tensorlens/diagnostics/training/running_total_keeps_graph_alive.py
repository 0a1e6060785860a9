"""Finds the cause of `running-total-keeps-graph-alive`."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.lineage import ancestry, backward_reaches, leaves_above
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.diagnostics.shared.edits.expressions import with_call
from tensorlens.diagnostics.shared.wording import finding, fix, named, with_method
from tensorlens.diagnostics.training._retained_graphs import find_kept
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Diagnostic, Edit, Fix, Label

CODE = "running-total-keeps-graph-alive"
FEWEST = 3  # rounds, each of which depends on the one before
_ADDING = ("add", "sub", "lerp")
MAX_STEPS = 200  # calls that are followed back from one round to the one before
MAX_OTHERS = 16  # rounds of other chains between two rounds of one


@dataclass(frozen=True, slots=True)
class _Chain:
    """Calls of one line, one for each round of a loop. Each uses the result of the one before."""

    calls: tuple[Call, ...]
    added: int | None  # the tensor that the last round added; None: it only computed with the result before

    @property
    def last(self) -> Call:
        return self.calls[-1]

    @property
    def carried(self) -> int:
        return _made(self.last)[0]


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    lines = {} if _failed_in_backward(facts) else _by_line(facts)
    chains = [chain for calls in lines.values() if (chain := _chain(facts, calls)) is not None]
    kept = [chain for chain in chains if _outlives(facts, chain) and not _needed(facts, chain)]
    wrong = [chain for chain in kept if _over_passes(facts, chain) or _is_repeated(facts, chain)]
    yield from (_report(facts, chain) for chain in wrong)
    if not wrong:  # else the total explains what stays alive
        yield from find_kept(facts, CODE)


def _by_line(facts: TraceIndex) -> dict[object, list[Call]]:
    """Returns the recorded calls that made a result, by line. Lines that ran fewer than `FEWEST` times are left out."""
    lines: dict[object, list[Call]] = defaultdict(list)
    place = cache(lambda site: place_of(facts.trace.sites[site]))
    for call in facts.calls:
        if call.mode == "grad" and (call.outputs or call.writes):
            for state in call.states:
                if state.requires_grad and not state.is_leaf:
                    lines[place(call.site)].append(call)
                    break
    return {line: calls for line, calls in lines.items() if len(calls) >= FEWEST}


def _made(call: Call) -> list[int]:
    return [access.tensor for access in call.outputs] or [write.tensor for write in call.writes]


def _chain(facts: TraceIndex, calls: list[Call]) -> _Chain | None:
    """Returns the longest chain of calls of a line, each of which depends on the one of the round before.

    Calls between two of its rounds may belong to other chains, as those of two meters that one method adds to.
    """
    chain: list[Call] = []
    others = 0
    for call in _rounds(facts, _up_to_longest(facts, calls)):
        if chain and not _carries(facts, call, chain[-1]):
            others += 1
            if others > MAX_OTHERS:
                break
            continue
        others = 0
        chain.append(call)
    if len(chain) < FEWEST:
        return None
    return _Chain(tuple(reversed(chain)), _added(facts, chain[0], chain[1]))


def _up_to_longest(facts: TraceIndex, calls: list[Call]) -> list[Call]:
    """Returns the calls of a line up to the one that most calls of the line lead to, each by the result of another."""
    made: dict[int, int] = {}  # the length of the chain that leads to each tensor
    longest = place = 0
    for number, call in enumerate(calls):
        length = 1 + max([made.get(access.tensor, 0) for access in call.inputs], default=0)
        for tensor in _made(call):
            made[tensor] = length
        if length >= longest:
            longest, place = length, number
    return calls[: place + 1]


def _rounds(facts: TraceIndex, calls: list[Call]) -> Iterator[Call]:
    """Yields the last call of each run of a site, the latest run first."""
    site, latest = calls[-1].site, None
    for call in reversed(calls):
        if call.site == site and (run := facts.times_run(site, call.index)[0]) != latest:
            latest = run
            yield call


def _carries(facts: TraceIndex, earlier: Call, later: Call) -> bool:
    """Returns whether `later` uses the result of `earlier`, directly or through other calls of the same line."""
    line = place_of(facts.trace.sites[later.site])
    waiting, seen = [(access.tensor, later.index) for access in later.inputs], 0
    while waiting and seen < MAX_STEPS:
        number, before = waiting.pop()
        for call in facts.producers(number, before)[:1]:
            seen += 1
            if call is earlier:
                return True
            if call.index > earlier.index and place_of(facts.trace.sites[call.site]) == line:
                waiting.extend((access.tensor, call.index) for access in call.inputs)
    return False


def _added(facts: TraceIndex, last: Call, before: Call) -> int | None:
    """Finds the tensor with a history, computed on another line, that the last round added to the total."""
    carried, line = set(_made(before)), place_of(facts.trace.sites[last.site])
    waiting = [last]
    for call in waiting:
        if call.index <= before.index:
            continue
        for access in call.inputs:
            state = facts.state(access.tensor, call.index - 1)
            if access.tensor in carried or state is None or state.is_leaf or not state.requires_grad:
                continue
            made = facts.producers(access.tensor, call.index)[:1]
            if not made or place_of(facts.trace.sites[made[0].site]) != line:
                return access.tensor
            waiting += made
    return None


def _over_passes(facts: TraceIndex, chain: _Chain) -> bool:
    """Returns whether backward passes ran between the rounds, as in a training loop."""
    return any(chain.calls[0].index < backward.index < chain.last.index for backward in facts.backwards)


def _is_repeated(facts: TraceIndex, chain: _Chain) -> bool:
    """Returns whether each round computed from the same leaves, unlike a sum over different parameters.

    If backward passes run elsewhere, the line must also add: the state of a recurrent network is no total. A sum of
    what was there before the first round, as `sum(losses.values())`, keeps nothing alive by itself.
    """
    if chain.added is not None:
        made = facts.producers(chain.added, chain.last.index)[:1]
        if made and made[0].index < chain.calls[0].index:
            return False
    rounds = list(pairwise(chain.calls[-3:]))
    if facts.backwards and not all(_adds(call) for _, call in rounds):
        return False
    of_rounds = [_leaves_used(facts, call, before) for before, call in rounds]
    return bool(set.intersection(*of_rounds))


def _adds(call: Call) -> bool:
    name = call.op.rpartition(".")[2].strip("_")
    return name in _ADDING or name[1:] in _ADDING  # `__iadd__`, `__radd__`


def _leaves_used(facts: TraceIndex, call: Call, before: Call) -> set[int]:
    """Returns the leaves that a round's other inputs were computed from, apart from the result of the round before."""
    carried, found = set(_made(before)), set[int]()
    waiting, seen = [(access.tensor, call.index) for access in call.inputs], 0
    while waiting and seen < MAX_STEPS:
        number, at = waiting.pop()
        seen += 1
        if number in carried:
            continue
        if _is_leaf(facts, number, at):
            found.add(number)
        elif carried.isdisjoint(tensor for tensor, _ in ancestry(facts, number, at)):
            found.update(leaves_above(facts, number, at))
        else:
            made = facts.producers(number, at)[:1]
            waiting += [(access.tensor, producer.index) for producer in made for access in producer.inputs]
    return found


def _is_leaf(facts: TraceIndex, number: int, at: int) -> bool:
    state = facts.state(number, at)
    return state is not None and state.is_leaf and state.requires_grad


def _outlives(facts: TraceIndex, chain: _Chain) -> bool:
    """Returns whether the last result was kept for its value: it was alive when the run ended, or was read as a
    number."""
    number = chain.carried
    if any(state.tensor == number and state.requires_grad for state in facts.trace.end.states):
        return True
    return any(
        call.op in OPS_LEAVING_TORCH and call.index > chain.last.index and any(a.tensor == number for a in call.inputs)
        for call in facts.calls
    )


def _needed(facts: TraceIndex, chain: _Chain) -> bool:
    """Returns whether a backward pass went through the chain: then the program needs it."""
    first = chain.calls[0]
    later = [backward for backward in facts.backwards if backward.index > first.index]
    return any(backward_reaches(facts, backward, call) for backward in later for call in (chain.calls[1], chain.last))


def _failed_in_backward(facts: TraceIndex) -> bool:
    """Returns whether a backward pass failed: it may have been going through any chain."""
    return any(failure.op is not None and "backward" in failure.op for failure in facts.trace.failures)


def _report(facts: TraceIndex, chain: _Chain) -> Diagnostic:
    name = named(facts, chain.carried, chain.last.index)
    rounds = len(chain.calls)
    added = None if chain.added is None else named(facts, chain.added, chain.last.index)
    last = _pass_of_last(facts, chain)
    fixes = [_fix(facts, chain, name, added)]
    if last is not None:
        fixes.insert(0, fix(f"call backward on {name}, if each round is to count", place=facts.span(last.site)))
    onto = "" if added is None else f" and to each {added} that was added"
    return finding(
        CODE,
        "warning",
        f"{name} keeps the graphs of {rounds} rounds alive, and no backward pass needs them",
        f"the graph of {name} leads to the round before{onto}: memory grows with every round",
        [
            facts.label("shared_here", chain.last.site, f"takes the graph of each round into {name}"),
            _built(facts, chain, added),
            None if last is None else facts.label("needed_here", last.site, f"starts from the last {added} alone"),
        ],
        fixes=fixes,
        evidence={"rounds": rounds, "tensor": name},
    )


def _pass_of_last(facts: TraceIndex, chain: _Chain) -> Backward | None:
    """Returns the pass after all rounds if it starts from what the last one added: the total may be meant."""
    after = next((each for each in facts.backwards if each.index > chain.last.index and not each.failed), None)
    if after is None or _over_passes(facts, chain):
        return None
    return after if chain.added in {root.tensor for root in after.roots} else None


def _fix(facts: TraceIndex, chain: _Chain, name: str, added: str | None) -> Fix:
    if added is None and _serves_passes(facts, chain):
        kept = next((each.name for each in facts.trace.end.bindings if each.tensor == chain.carried), None)
        what = "what is kept" if kept is None else f"what `{kept}` keeps"
        return fix(f"detach {what} for the next round, where it is kept: backward passes need other runs of this line")
    return fix(_cure(name, added), *_detaching(facts, chain), place=facts.span(chain.last.site))


def _serves_passes(facts: TraceIndex, chain: _Chain) -> bool:
    """Returns whether the last backward pass goes through other runs of the line of a chain."""
    line, rounds = place_of(facts.trace.sites[chain.last.site]), {call.index for call in chain.calls}
    others = [c for c in facts.calls if c.index not in rounds and place_of(facts.trace.sites[c.site]) == line]
    if not facts.backwards:
        return False
    last = facts.backwards[-1]
    before = [call for call in others if call.index < last.index][-FEWEST:]
    return any(backward_reaches(facts, last, call) for call in before)


def _built(facts: TraceIndex, chain: _Chain, added: str | None) -> Label | None:
    if chain.added is None or added is None:
        return facts.label("graph_built_here", chain.last.site, "each round adds to the graph")
    state = facts.state(chain.added, chain.last.index - 1)
    made = None if state is None else facts.call_of_node(state.node, chain.last.index, state.grad_fn)
    return None if made is None else facts.label("graph_built_here", made.site, f"makes {added} with its graph")


def _detaching(facts: TraceIndex, chain: _Chain) -> tuple[Edit, ...]:
    """Adds the value without its graph: `total += loss` becomes `total += loss.detach()`. It stays a tensor, because
    other lines may use it as one."""
    span = facts.span(chain.last.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or chain.added is None or not isinstance(statement, ast.AugAssign | ast.Assign):
        return ()
    names = {*facts.names.all_names(chain.added), facts.name(chain.added, chain.last.index)}
    value, parts = statement.value, [n for n in ast.walk(statement.value) if isinstance(n, ast.expr)]
    if any(isinstance(part, ast.IfExp | ast.Lambda | ast.NamedExpr) for part in parts):
        return ()  # perhaps no tensor each time
    added = [part for part in parts if plain_name(part) in names]
    detached = added[0] if isinstance(statement, ast.Assign) and len(added) == 1 else value
    edit = with_call(facts, facts.span_of(detached, span.file), "detach")
    return () if edit is None else (edit,)


def _cure(name: str, added: str | None) -> str:
    if added is None:
        return f"cut the history between rounds, {with_method(name, 'detach()')}, or run it under `torch.no_grad()`"
    cut = with_method(added, "detach()")
    return f"add the value without its graph, {cut}; for a plain number {with_method(added, 'item()')}"
