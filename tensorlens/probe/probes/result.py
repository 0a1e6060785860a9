"""Probes of what comes out: the object, its memory, its shape; and of what the call changes in x."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tensorlens.compare.records import Answer
from tensorlens.probe import words
from tensorlens.probe.probes.table import allowed, equal, probe
from tensorlens.probe.words import yes

if TYPE_CHECKING:
    from tensorlens.probe.bench import Bench


@probe("runs", "result")
def runs(bench: Bench) -> Answer:
    """Does the call run on this input? Where it does not, no other probe is asked there."""
    return allowed(bench.trial)


@probe("returns", "result")
def returns(bench: Bench) -> Answer:
    """What does it return?"""
    returned = bench.trial().returned
    name = type(returned).__name__
    if isinstance(returned, (tuple, list)) and not hasattr(returned, "numel"):
        return Answer(f"{name} of {len(returned)}", f"{name} of {len(returned)}")
    return Answer(name, name)


@probe("warns", "result", everywhere=False)
def warns(bench: Bench) -> Answer:
    """Does the call emit a warning?"""
    told = bench.warnings()
    return Answer(told[0].partition(":")[0], f"yes: {told[0]}") if told else Answer(False, "no")


@probe("is x itself", "result")
def same_object(bench: Bench) -> Answer:
    """Is the result the very object that went in?"""
    trial = bench.trial()
    return yes(trial.returned is trial.x)


@probe("shares memory with x", "result")
def shares_storage(bench: Bench) -> Answer | None:
    """Does the result lie in the memory of x?"""
    trial = bench.trial()
    shared = bench.overlap(trial.result if trial.result is not None else trial.returned, trial.x)
    return None if shared is None else yes(shared)


@probe("is a view of x", "result")
def is_view(bench: Bench) -> Answer | None:
    """Does autograd know the result as a view of x (or of what x is a view of)?"""
    trial = bench.trial()
    if trial.result is None:
        return None
    base = trial.result._base
    related = base is not None and (base is trial.x or base is trial.x._base)
    return yes(related and trial.result is not trial.x)


@probe("shares the version counter", "result")
def shares_version_counter(bench: Bench) -> Answer | None:
    """Does autograd see a write to the result as a write to x?"""
    trial = bench.trial()
    if trial.result is None or bench.version(trial.result) is None:
        return None
    if trial.result is trial.x:
        return yes(True)
    for target, other in ((trial.result, trial.x), (trial.x, trial.result)):
        before = bench.version(other)
        with contextlib.suppress(RuntimeError), bench.no_grad():
            bench.write(target)
            return yes(bench.version(other) != before)
    return None


@probe("changes x", "result")
def changes_source(bench: Bench) -> Answer:
    """What of x is different after the call?"""
    subject = bench.subject()
    before, numbers, version = _state(subject.x), subject.x.detach().clone(), bench.version(subject.x)
    bench.apply(subject)
    after = _state(subject.x)
    changed = [name for name in before if before[name] != after[name]]
    if "shape" not in changed and not equal(subject.x.detach(), numbers):
        changed.insert(0, "values")
    elif bench.version(subject.x) != version:
        changed.insert(0, "written with the same values")
    return Answer(", ".join(changed) or False, ", ".join(changed) or "no")


@probe("shape of the result", "result")
def result_shape(bench: Bench) -> Answer | None:
    """From which shape to which?"""
    spec, result = bench.spec, bench.trial().result
    if result is None:
        return None
    shape = words.shape_text(tuple(result.shape))
    return Answer(shape, shape if tuple(result.shape) != spec.shape else f"{shape}, as x")


@probe("dtype of the result", "result")
def result_dtype(bench: Bench) -> Answer | None:
    """Which dtype has the result?"""
    result = bench.trial().result
    return None if result is None else _same_or(str(result.dtype).removeprefix("torch."), bench.spec.dtype)


@probe("device of the result", "result", everywhere=False)
def result_device(bench: Bench) -> Answer | None:
    """On which device is the result?"""
    result = bench.trial().result
    return None if result is None else Answer(str(result.device), str(result.device))


@probe("contiguous", "result")
def contiguous(bench: Bench) -> Answer | None:
    """Is the result contiguous?"""
    result = bench.trial().result
    return None if result is None or not bench.strided(result) else yes(result.is_contiguous())


def _state(x: Any) -> dict[str, object]:
    return {
        "shape": tuple(x.shape),
        "strides": x.stride(),
        "memory": x.data_ptr(),
        "dtype": x.dtype,
        "requires_grad": x.requires_grad,
        "graph": x.grad_fn and x.grad_fn.name(),
    }


def _same_or(found: str, source: str) -> Answer:
    return Answer(found, f"{found}, as x" if found == source else found)
