"""Probes of the result in the graph: requires_grad, nodes, and the gradient that reaches x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorlens.compare.comparison_records import Answer
from tensorlens.compare.probe import measured_text
from tensorlens.compare.probe.measured_text import yes
from tensorlens.compare.probe.probes.registry import equal, probe

if TYPE_CHECKING:
    from tensorlens.compare.probe.bench import Bench, Trial

NOISE = 1e-5  # in float32, a gradient that is smaller than this may be a rounded zero
PRECISE_NOISE = 1e-13  # the same in float64


@probe("requires grad", "graph")
def requires_grad(bench: Bench) -> Answer | None:
    """Does the result require grad?"""
    result = bench.trial().result
    return None if result is None else yes(result.requires_grad)


@probe("is a leaf", "graph", level="detail")
def is_leaf(bench: Bench) -> Answer | None:
    """Is the result a leaf of the graph?"""
    result = bench.trial().result
    return None if result is None else yes(result.is_leaf)


@probe("is a leaf that trains", "graph")
def trains(bench: Bench) -> Answer | None:
    """Is the result a leaf that requires grad: does backward fill its .grad, so that an optimizer may change it?"""
    result = bench.trial().result
    return None if result is None else yes(result.is_leaf and result.requires_grad)


@probe("is an inference tensor", "graph")
def is_inference(bench: Bench) -> Answer | None:
    """Is the result an inference tensor, which no graph may use later?"""
    result = bench.trial().result
    return None if result is None else yes(result.is_inference())


@probe("grad_fn", "graph")
def grad_fn(bench: Bench) -> Answer | None:
    """Which node made the result? "x's own" where the call added none and gave x back."""
    subject = bench.subject()
    before, counted = subject.x.grad_fn, bench.sequence()
    result = bench.apply(subject).result
    if result is None:
        return None
    if result is subject.x and before is not None and bench.sequence() == counted and result.grad_fn is before:
        return Answer("x's own", "x's own")
    name = None if result.grad_fn is None else result.grad_fn.name().rpartition("::")[2]
    return Answer(name, name or "None")


@probe("nodes added to the graph", "graph", level="detail")
def nodes_added(bench: Bench) -> Answer:
    """How many nodes did the call add to the graph?"""
    subject = bench.subject()
    before = bench.sequence()
    bench.apply(subject)
    added = bench.sequence() - before
    return Answer(added, str(added))


@probe("gradient reaches x", "graph", level="basic")
def gradient_reaches_source(bench: Bench) -> Answer | None:
    """Does a gradient of the result reach x? Probed with random numbers, not with ones."""
    return _reaches(bench, lambda subject: subject.leaf)


@probe("gradient reaches y", "graph", everywhere=False)
def gradient_reaches_y(bench: Bench) -> Answer | None:
    """Does a gradient of the result reach y, the second tensor?"""
    return _reaches(bench, lambda subject: subject.y if subject.y.requires_grad else None) if bench.uses_y else None


@probe("fills .grad", "graph")
def fills_grad(bench: Bench) -> Answer | None:
    """Which tensors have a .grad after the call, of x, the leaf that x is computed from, and y?"""
    subject = bench.subject()
    if subject.leaf is None:
        return None
    bench.apply(subject)
    named = {"x": subject.x, "the leaf behind x": subject.leaf, "y": subject.y}
    if subject.leaf is subject.x:
        del named["the leaf behind x"]
    filled = {name: each.grad for name, each in named.items() if each.grad is not None}
    recorded = "; requires grad" if any(grad.requires_grad for grad in filled.values()) else ""
    text = "; ".join(f"of {name}: {measured_text.numbers(grad)}" for name, grad in filled.items())
    return Answer(f"{', '.join(filled)}{recorded}" or False, f"{text}{recorded}" or "no")


@probe("gradient of result.sum()", "graph", everywhere=False)
def gradient_of_sum(bench: Bench) -> Answer | None:
    """What does `result.sum().backward()` give x as its gradient?"""
    trial = bench.trial()
    leaf = trial.subject.leaf
    if trial.result is None or leaf is None:
        return None
    bench.forget_gradient(leaf)
    try:
        trial.result.sum().backward()
    except Exception as error:
        return measured_text.raised(error, "backward raises", value="backward raises")
    reached = leaf.grad
    random = "random, such as " if _is_random(bench, trial) else ""
    text = "none reaches x" if reached is None else measured_text.numbers(reached)
    if reached is not None and reached.any() and _is_noise(bench, lambda subject: subject.leaf, reached, bench.ones):
        text = "0 everywhere (up to rounding)"
    return Answer(text, f"{random}{text}")


@probe("gradient is passed unchanged", "graph")
def gradient_is_identity(bench: Bench) -> Answer | None:
    """Does x get the gradient of the result as it is, number for number, whatever the sign of x?"""
    answers = []
    for numbers in ("signed", "positive"):
        spec = bench.other(values=numbers)
        try:
            trial = bench.trial(spec)
        except Exception:
            if numbers == bench.spec.values:
                raise
            continue
        if trial.result is None or trial.subject.leaf is None:
            return None
        got = bench.gradients(trial.result, trial.subject.leaf)
        sent = bench.cotangent(trial.result)
        answers.append(got is not None and equal(got.reshape(-1), sent.reshape(-1).to(got.dtype)))
    return yes(all(answers))


def _is_random(bench: Bench, trial: Trial) -> bool:
    """Returns whether the result changes with the random seed."""
    other = bench.apply(bench.subject(), seed=1)
    return measured_text.digest(bench.tensors(trial.returned)) != measured_text.digest(bench.tensors(other.returned))


@probe("gradient of x used afterwards", "graph", everywhere=False)
def later_gradient(bench: Bench) -> Answer | None:
    """After the call, what does `x.sum().backward()` give x? 1 everywhere if the call does not change x."""
    subject = bench.subject()
    if subject.leaf is None:
        return None
    bench.apply(subject)
    bench.forget_gradient(subject.leaf)
    try:
        subject.x.sum().backward()
    except Exception as error:
        return measured_text.raised(error, "backward raises", value="backward raises")
    text = measured_text.numbers(subject.leaf.grad)
    return Answer(text, text)


def _reaches(bench: Bench, leaf_of: Any) -> Answer | None:
    trial = bench.trial()
    leaf = leaf_of(trial.subject)
    if trial.result is None or leaf is None:
        return None
    reached = bench.gradients(trial.result, leaf)
    if reached is None:
        return yes(False)
    if not reached.any():
        return Answer("zeros", "as zeros only")
    return Answer("zeros", "as zeros only") if _is_noise(bench, leaf_of, reached) else yes(True)


def _is_noise(bench: Bench, leaf_of: Any, reached: Any, sent: Any = None) -> bool:
    """Returns whether all numbers are rounded zeros. If float32 can't show that, a run in float64 decides."""
    if not reached.isfinite().all() or reached.abs().max() > NOISE:
        return False
    if bench.spec.dtype == "float64":
        return bool(reached.abs().max() < PRECISE_NOISE)
    try:
        trial = bench.trial(bench.other(dtype="float64"))
        if trial.result is None:
            return False
        precise = bench.gradients(trial.result, leaf_of(trial.subject), sent and sent(trial.result))
    except Exception:
        return False
    return precise is not None and bool(precise.abs().max() < PRECISE_NOISE)
