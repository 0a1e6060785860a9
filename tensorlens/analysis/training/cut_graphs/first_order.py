"""Finds gradients without a graph of their own that enter a loss, although they were computed from what it trains.

`autograd.grad()` gives its result a graph only with `create_graph=True`. A call that writes `create_graph` as an
argument has decided about it, and so has a script that detaches the gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import MAX_CALLS, calls_reached_by, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import LINEAR, op_name, trained_by
from tensorlens.analysis.training.loss_calls import examined_passes, is_arithmetic, is_error, loss_calls
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_GRAD = "autograd.grad"
_SUMS = ("add", "sub", "iadd", "isub", "radd", "rsub")
_STEPS = ("sub", "isub")
_PRODUCTS = ("mul", "rmul", "imul", "div", "truediv", "itruediv", "idiv", "true_divide")
_LENGTHS = ("abs", "absolute", "norm", "vector_norm", "linalg_norm")
_FOLLOWED = (*_SUMS, *LINEAR, "unsqueeze", "getitem")
_Place = tuple[int, int]  # a tensor, and the event that uses it


@dataclass(frozen=True, slots=True)
class FirstOrder:
    """A gradient that entered a loss as a constant."""

    gradient: Call  # `autograd.grad`
    entered: Call  # the first recorded operation that used it
    backward: Backward
    trained: frozenset[int]  # parameters that it was computed from and that this pass trains


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the difference that an error measures."""

    place: _Place
    is_added: bool = False
    beside: tuple[_Place, ...] = ()  # what is added to it, apart from plain numbers
    factors: tuple[_Place, ...] = ()  # what it is multiplied by


def first_order_gradients(training: Training) -> Iterator[FirstOrder]:
    """Yields these gradients, each line once.

    A gradient that several passes use is left out: it was stored, as the weights of a penalty are.
    """
    facts = training.facts
    graphless = {call.index: event for call in facts.calls if (event := _pass_of(facts, call)) is not None}
    passes = list(examined_passes(facts)) if graphless else []
    found = [
        (backward, call, entered)
        for backward in passes
        for search in (_entering, _scaled)
        for call, entered in search(facts, backward, graphless)
    ]
    users: dict[int, set[int]] = {}
    for backward, call, _ in found:
        users.setdefault(call.index, set()).add(backward.index)
    reported: set[int] = set()
    for backward, call, entered in found:
        event = graphless[call.index]
        trained = trained_by(training, backward) & _leaves(facts, event)
        if trained and len(users[call.index]) == 1 and call.site not in reported:
            reported.add(call.site)
            yield FirstOrder(call, entered, backward, frozenset(trained))


def _pass_of(facts: TraceIndex, call: Call) -> Backward | None:
    """Returns the pass of a call of `autograd.grad` that did not decide whether to record its gradients."""
    event = facts.event(call.index - 1) if call.op == _GRAD else None
    if not isinstance(event, Backward) or event.create_graph:
        return None
    node = facts.names.syntax.node(facts.trace.sites[call.site].span)
    keywords = [keyword.arg for keyword in node.keywords] if isinstance(node, ast.Call) else [None]
    return None if {"create_graph", None} & set(keywords) else event


def _entering(facts: TraceIndex, backward: Backward, graphless: dict[int, Backward]) -> Iterator[tuple[Call, Call]]:
    """Yields the gradients without a graph that a pass used as constants, each with the call that used it.

    These are the ones that the arithmetic of the loss adds to what has a history, and those that a step away from a
    parameter is made with: `w - lr * gradient`. A gradient that is a factor is a weight, and may be meant as one:
    `_scaled` finds those that are not.
    """
    loss = {call.index for call in loss_calls(facts, backward)}
    for index in sorted(calls_reached_by(facts, backward).calls):
        call = facts.call(index)
        if call is None or op_name(call) not in _SUMS:
            continue
        inputs = [access.tensor for access in call.inputs]
        history = {number for number in inputs if facts.requires_grad(number, index - 1)}
        for number in inputs if history else ():
            for gradient in _gradients(facts, number, index, graphless) if number not in history else ():
                event = graphless[gradient.index]
                is_step = op_name(call) in _STEPS and _has_leaf(facts, history & set(event.inputs), index)
                if is_step or (index in loss and not _is_balanced(facts, event, (number, index), history)):
                    yield gradient, call


def _is_balanced(facts: TraceIndex, event: Backward, place: _Place, history: set[int]) -> bool:
    """Returns whether a value is a norm of a gradient, or the like, and what it is added to is no result of the same
    parameters: a weight of a term is fitted to it, as in `(weight * norm - norms.mean()).abs()`."""
    beside = set[int]().union(*(graph_leaves(facts, number, place[1]) for number in history))
    return not _is_by_rows(facts, event, place[0]) and not beside & _leaves(facts, event)


def _is_by_rows(facts: TraceIndex, event: Backward, number: int) -> bool:
    """Returns whether a value has a row for each row of what a pass was asked the gradients of, which are samples."""
    asked, rows = [facts.tensor(each) for each in event.inputs], facts.tensor(number).shape[:1]
    return rows > (1,) and all(each.type != "Parameter" and each.shape[:1] == rows for each in asked)


def _leaves(facts: TraceIndex, event: Backward) -> set[int]:
    """Returns the leaves that the gradients of a pass were computed from."""
    return set[int]().union(*(graph_leaves(facts, root.tensor, event.started) for root in event.roots))


def _has_leaf(facts: TraceIndex, numbers: set[int], index: int) -> bool:
    return any(facts.is_leaf_requiring_grad(number, index - 1) for number in numbers)


def _scaled(facts: TraceIndex, backward: Backward, graphless: dict[int, Backward]) -> Iterator[tuple[Call, Call]]:
    """Yields the derivatives without a graph that are parts of a difference, times a coefficient that has a history.

    An error measures the difference, as in `(k * u_xx + load).square()`. Other products may be weighted terms, or
    losses that are written for their gradients alone.
    """
    waiting, seen = list(_measured(facts, backward)), set[int]()
    for part in waiting:
        call = next(iter(facts.producers(*part.place)), None)
        if call is None or call.index in seen or len(seen) > MAX_CALLS or is_error(call):
            continue
        seen.add(call.index)
        name, inputs = op_name(call), dict.fromkeys((access.tensor, call.index) for access in call.inputs)
        for place in inputs if name in _FOLLOWED else ():
            others = tuple(other for other in inputs if other != place)
            beside, factors = (others, ()) if name in _SUMS else ((), others)
            is_added = part.is_added or name in _SUMS
            further = _Part(place, is_added, (*part.beside, *beside), (*part.factors, *factors))
            if name not in _PRODUCTS or facts.requires_grad(place[0], call.index - 1):
                waiting.append(further)
                continue
            found = _gradients(facts, *place, graphless)
            yield from ((each, call) for each in found if _is_derivative(facts, graphless[each.index], further))


def _measured(facts: TraceIndex, backward: Backward) -> Iterator[_Part]:
    """Yields what the errors of a loss measure."""
    for call in loss_calls(facts, backward):
        if is_error(call) or op_name(call) in _LENGTHS:
            places = dict.fromkeys((access.tensor, call.index) for access in call.inputs)
            for place in places:
                beside = tuple(other for other in places if other != place)
                yield _Part(place, bool(beside), beside)


def _is_derivative(facts: TraceIndex, event: Backward, part: _Part) -> bool:
    """Returns whether a part is a derivative by coordinates, one for each sample, that only a coefficient scales.

    A step along a gradient can look the same. So a first derivative counts only if it is added to a value that depends
    on the same coordinates and parameters.
    """
    asked, shape = set(event.inputs), facts.tensor(part.place[0]).shape
    are_leaves = all(facts.is_leaf_requiring_grad(number, event.started) for number in asked)
    leaves = _leaves(facts, event)
    factors = [place for place in part.factors if facts.requires_grad(place[0], place[1] - 1)]
    is_scaled = factors and not any(
        leaves & graph_leaves(facts, *place) or _has_rows(facts, place[0], shape) for place in factors
    )
    is_step = any(number in asked for number, _ in part.beside)
    is_found = are_leaves and is_scaled and part.is_added and _is_by_rows(facts, event, part.place[0])
    if is_step or not is_found:
        return False
    recorded = {each.index + 1 for each in facts.backwards if each.op == _GRAD and each.create_graph}
    if any(any(_gradients(facts, root.tensor, event.started, recorded)) for root in event.roots):
        return True
    shared = (graph_leaves(facts, *place) & leaves for place in part.beside)
    return any(each & asked and each - asked for each in shared)


def _has_rows(facts: TraceIndex, number: int, shape: tuple[int, ...]) -> bool:
    """Returns whether a factor differs from sample to sample of a value of this shape."""
    own = facts.tensor(number).shape
    return len(own) >= len(shape) and own[:1] != (1,)


def _gradients(facts: TraceIndex, number: int, before: int, wanted: Container[int]) -> Iterator[Call]:
    """Yields the calls with these indices that a tensor was computed from by arithmetic, while gradients were on."""
    waiting, seen = [(number, before)], set[int]()
    for each, limit in waiting:
        call = next(iter(facts.producers(each, limit)), None)
        if call is None or call.index in seen or len(seen) > MAX_CALLS or call.mode != "grad":
            continue
        seen.add(call.index)
        if call.index in wanted:
            yield call
        elif is_arithmetic(call):
            waiting += [(access.tensor, call.index) for access in call.inputs]
