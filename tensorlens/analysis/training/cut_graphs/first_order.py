"""Finds gradients without a graph of their own that enter a loss, although they were computed from what it trains.

`autograd.grad()` gives its result a graph only with `create_graph=True`. A call that writes `create_graph` as an
argument has decided about it, and so has a script that detaches the gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import MAX_CALLS, calls_reached_by, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.loss_calls import examined_passes, is_arithmetic, loss_calls
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_GRAD = "autograd.grad"
_SUMS = ("add", "sub", "iadd", "isub", "radd", "rsub")
_STEPS = ("sub", "isub")


@dataclass(frozen=True, slots=True)
class FirstOrder:
    """A gradient that entered a loss as a constant."""

    gradient: Call  # `autograd.grad`
    entered: Call  # the first recorded operation that used it
    backward: Backward
    trained: frozenset[int]  # parameters that it was computed from and that this pass trains


def first_order_gradients(training: Training) -> Iterator[FirstOrder]:
    """Yields these gradients, each line once.

    A gradient that several passes use is left out: it was stored, as the weights of a penalty are.
    """
    facts = training.facts
    graphless = {call.index: event for call in facts.calls if (event := _pass_of(facts, call)) is not None}
    passes = list(examined_passes(facts)) if graphless else []
    found = [
        (backward, call, entered) for backward in passes for call, entered in _entering(facts, backward, graphless)
    ]
    users: dict[int, set[int]] = {}
    for backward, call, _ in found:
        users.setdefault(call.index, set()).add(backward.index)
    reported: set[int] = set()
    for backward, call, entered in found:
        event = graphless[call.index]
        leaves = (graph_leaves(facts, root.tensor, event.started) for root in event.roots)
        trained = trained_by(training, backward) & set[int]().union(*leaves)
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
    parameter is made with: `w - lr * gradient`. A gradient that is a factor is a weight, and may be meant as one.
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
                stepped = history & set(graphless[gradient.index].inputs)
                if index in loss or (op_name(call) in _STEPS and _has_leaf(facts, stepped, index)):
                    yield gradient, call


def _has_leaf(facts: TraceIndex, numbers: set[int], index: int) -> bool:
    return any(facts.is_leaf_requiring_grad(number, index - 1) for number in numbers)


def _gradients(facts: TraceIndex, number: int, before: int, graphless: dict[int, Backward]) -> Iterator[Call]:
    """Yields the gradients that a tensor without a history was computed from, by arithmetic while gradients were on."""
    waiting, seen = [(number, before)], set[int]()
    for each, limit in waiting:
        call = next(iter(facts.producers(each, limit)), None)
        if call is None or call.index in seen or len(seen) > MAX_CALLS or call.mode != "grad":
            continue
        seen.add(call.index)
        if call.index in graphless:
            yield call
        elif is_arithmetic(call):
            waiting += [(access.tensor, call.index) for access in call.inputs]
