"""Probes of what autograd knows of the result: requires_grad, nodes, and the gradient that reaches x."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlens.compare.records import Answer
from tensorlens.probe import words
from tensorlens.probe.probes.table import equal, probe
from tensorlens.probe.words import yes

if TYPE_CHECKING:
    from tensorlens.probe.bench import Bench


@probe("requires grad", "graph")
def requires_grad(bench: Bench) -> Answer | None:
    """Does the result require grad?"""
    result = bench.trial().result
    return None if result is None else yes(result.requires_grad)


@probe("is a leaf", "graph")
def is_leaf(bench: Bench) -> Answer | None:
    """Is the result a leaf of the graph?"""
    result = bench.trial().result
    return None if result is None else yes(result.is_leaf)


@probe("grad_fn", "graph")
def grad_fn(bench: Bench) -> Answer | None:
    """Which node made the result?"""
    result = bench.trial().result
    if result is None:
        return None
    name = None if result.grad_fn is None else result.grad_fn.name()
    return Answer(name, name or "None")


@probe("nodes added to the graph", "graph")
def nodes_added(bench: Bench) -> Answer:
    """How many nodes did the call add to the graph?"""
    subject = bench.subject()
    before = bench.sequence()
    bench.apply(subject)
    added = bench.sequence() - before
    return Answer(added, str(added))


@probe("gradient reaches x", "graph")
def gradient_reaches_source(bench: Bench) -> Answer | None:
    """Does the gradient of the result reach x?"""
    trial = bench.trial()
    if trial.result is None or trial.subject.leaf is None:
        return None
    reached = bench.gradients(trial.result, trial.subject.leaf)
    if reached is None:
        return yes(False)
    return yes(True) if reached.any() else Answer("zeros", "as zeros only")


@probe("gradient of result.sum()", "graph")
def gradient_of_sum(bench: Bench) -> Answer | None:
    """What is the gradient of the sum of the result at x?"""
    trial = bench.trial()
    if trial.result is None or trial.subject.leaf is None:
        return None
    found = words.numbers(trial.subject.gradient(bench.gradients(trial.result, trial.subject.leaf)))
    return Answer(found, found)


@probe("gradient is passed unchanged", "graph")
def gradient_is_identity(bench: Bench) -> Answer | None:
    """Does x get the gradient of the result as it is, number for number?"""
    trial = bench.trial()
    if trial.result is None or trial.subject.leaf is None:
        return None
    sent = bench.weight_like(trial.result).detach()
    sent = (sent.flatten().cumsum(0)).reshape(sent.shape).to(trial.result.dtype)
    got = trial.subject.gradient(bench.gradients(trial.result, trial.subject.leaf, sent))
    return yes(got is not None and equal(got.reshape(-1), sent.reshape(-1)))


@probe("gradient reaches y", "graph", everywhere=False)
def gradient_reaches_y(bench: Bench) -> Answer | None:
    """Does the gradient of the result reach y, the second tensor?"""
    trial = bench.trial()
    if trial.result is None or not trial.subject.y.requires_grad or not bench.uses_y:
        return None
    reached = bench.gradients(trial.result, trial.subject.y)
    return Answer(reached is not None, "no" if reached is None else f"yes: {words.numbers(reached)}")
