"""Finds random values that a loss uses as constants, although they were drawn from what the loss trains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import MAX_CALLS, graph_leaves
from tensorlens.analysis.plain_values import may_require_grad
from tensorlens.analysis.shared_leaves import SharedLeaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, sums_below, trained_by
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above, recorded_from
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_RANDOM = frozenset(
    "normal bernoulli poisson binomial uniform rand randn rand_like randn_like multinomial exponential cauchy "
    "log_normal geometric standard_gamma sample_dirichlet dirichlet".split()
)
_RECORDED = frozenset(("torch.normal", "torch.bernoulli", "torch.poisson", "Tensor.bernoulli"))
"""Draws that autograd records, although their gradient consists of zeros."""
_JOINING = frozenset("cat concat concatenate stack hstack vstack column_stack".split())
_RESHAPING = frozenset("view reshape flatten squeeze unsqueeze clone float double to transpose permute".split())
_MAX_STEPS = 6  # calls without a graph between a draw and the call that uses it


@dataclass(frozen=True, slots=True)
class DrawnConstant:
    """A draw from a distribution whose parameters the pass trains by another way only."""

    draw: Call
    backward: Backward
    trained: tuple[int, ...]  # the parameters that the distribution was computed from
    passes_zeros: bool  # backward runs through the draw, which passes zeros on


def drawn_constants(training: Training) -> Iterator[DrawnConstant]:
    """Yields these draws, one for each line.

    A call that reads both a draw and a value computed from the same parameters may be a score function, as in
    `log_prob()`, or a straight-through estimate: then the draw is left out, unless a term of the loss is computed from
    it that gives none of the used gradients.
    """
    facts, reported = training.facts, set[int]()
    if facts.trace.inspection.switching:
        return  # it is not known which line has switched gradients off
    for backward in examined_passes(facts):
        used = trained_by(training, backward)
        meant, added, found = set[int](), set[int](), dict[int, set[int]]()
        useless = {call.index for call in _useless_terms(facts, backward, used)} if used else set[int]()
        above = list(recorded_above(facts, backward)) if used else []
        graph = {access.tensor for call in above for access in call.outputs}
        for call in above:
            with_history = [a.tensor for a in call.inputs if facts.requires_grad(a.tensor, call.index - 1)]
            for access in call.inputs:
                is_useless = call.index in useless
                if access.tensor in with_history:
                    draw = _recorded_draw(facts, access.tensor, call.index)
                else:
                    draw = _draw(facts, access.tensor, call.index, is_useless)
                if draw is None:
                    continue
                sources = _drawn_with(facts, draw)
                trained = used & _leaves(facts, sources, draw.index - 1)
                if is_useless and not graph.isdisjoint(sources):
                    added.add(draw.index)
                elif is_useless and _draw(facts, access.tensor, call.index, joined=False) is None:
                    continue  # an earlier draw, of which an environment made this input
                found.setdefault(draw.index, set()).update(trained)
                others = [number for number in with_history if number != access.tensor]
                if trained & _leaves(facts, others, call.index - 1):
                    meant.add(draw.index)
        for index, trained in found.items():
            draw = facts.call(index)
            is_meant = index in meant and index not in added
            if draw is not None and trained and not is_meant and draw.site not in reported:
                reported.add(draw.site)
                passes_zeros = draw.op in _RECORDED and draw.mode == "grad"
                yield DrawnConstant(draw, backward, tuple(sorted(trained)), passes_zeros)


def _leaves(facts: TraceIndex, numbers: list[int], at: int) -> set[int]:
    return set[int]().union(*(graph_leaves(facts, number, at + 1) for number in numbers))


def _useless_terms(facts: TraceIndex, backward: Backward, used: set[int]) -> Iterator[Call]:
    """Yields the calls that compute the terms of a loss whose graph leads to no used parameter.

    So it is if the gradients that this pass gives a critic are cleared before its own step.
    """
    leaves = SharedLeaves(facts, used)
    for added in sums_below(facts, backward):
        with_history = [a.tensor for a in added.inputs if facts.requires_grad(a.tensor, added.index - 1)]
        others = [number for number in with_history if not leaves.is_any_above(number, added.index)]
        if len(others) < len(with_history):
            yield from recorded_from(facts, [(number, added.index) for number in others])


def _draw(facts: TraceIndex, number: int, before: int, joined: bool) -> Call | None:
    """Returns the call that drew a value in the code of a distribution, before calls that only reshape or convert.

    With `joined`, these calls may also join the value with others.
    """
    for _ in range(_MAX_STEPS):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or not may_require_grad(facts.tensor(number)):
            return None
        if facts.trace.sites[call.site].through.endswith(".sample") and call.mode != "grad":
            return call if facts.mode_switch(call.index) is None else None
        if joined and op_name(call) in _JOINING:
            parts = (_draw(facts, access.tensor, call.index, joined=False) for access in call.inputs)
            return next((part for part in parts if part is not None), None)
        if len(call.inputs) != 1:
            return None
        number, before = call.inputs[0].tensor, call.index
    return None


def _recorded_draw(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that drew a value with a graph, before calls that only reshape or convert it."""
    for _ in range(_MAX_STEPS):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or call.op in _RECORDED:
            return call
        if len(call.inputs) != 1 or op_name(call) not in _RESHAPING:
            return None
        number, before = call.inputs[0].tensor, call.index
    return None


def _drawn_with(facts: TraceIndex, draw: Call) -> list[int]:
    """Returns the tensors that the code of the distribution computed a draw from; none if it drew nothing random."""
    found, is_random = list[int](), op_name(draw) in _RANDOM
    waiting = [(access.tensor, draw.index) for access in draw.inputs]
    for number, before in waiting:
        made = next(iter(facts.producers(number, before)), None)
        if made is not None and made.site == draw.site and made.mode != "grad" and len(waiting) < MAX_CALLS:
            is_random |= op_name(made) in _RANDOM
            waiting += [(access.tensor, made.index) for access in made.inputs]
        else:
            found.append(number)
    return found if is_random else []
