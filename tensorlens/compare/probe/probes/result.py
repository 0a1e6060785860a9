"""Probes of the result: the object, its numbers, memory and shape; and of the changes that the call makes to x."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tensorlens.compare.comparison_records import Answer
from tensorlens.compare.probe import measured_text
from tensorlens.compare.probe.measured_text import yes
from tensorlens.compare.probe.probes.registry import allowed, equal, probe

if TYPE_CHECKING:
    from tensorlens.compare.probe.bench import Bench


@probe("runs", "result")
def runs(bench: Bench) -> Answer:
    """Does the call run on this input? If not, no other probe is asked on it."""
    return allowed(bench.trial)


@probe("returns", "result")
def returns(bench: Bench) -> Answer:
    """What does it return?"""
    returned = bench.trial().returned
    name = "None" if returned is None else type(returned).__name__
    if isinstance(returned, (tuple, list)) and not hasattr(returned, "numel"):
        fields = ", ".join(_fields(returned))
        text = f"{'tuple' if fields else name} of {len(returned)}"
        return Answer(text, f"{text} ({fields})" if fields else text)
    return Answer(name, name)


def _fields(returned: Any) -> tuple[str, ...]:
    """Returns the field names of a named tuple, such as `values` and `indices`; none for other values."""
    names: Any = getattr(returned, "_fields", None) or getattr(type(returned), "__match_args__", ())
    return names if isinstance(returned, tuple) and len(names) == len(returned) else ()


@probe("values", "result", everywhere=False, level="basic")
def values(bench: Bench) -> Answer | None:
    """Which numbers are in the result?"""
    subject = bench.subject()
    before = measured_text.digest([subject.x])
    tensors = bench.tensors(bench.apply(subject).returned)
    if not tensors:
        return None
    if bench.uninitialized():
        return Answer("not set", "not set: uninitialized memory")
    digest = measured_text.digest(tensors)
    if digest == before:
        text = "those of x"
    else:
        text = ", ".join(measured_text.numbers(each, with_shape=False) for each in tensors)
    if digest != measured_text.digest(bench.tensors(bench.apply(bench.subject(), seed=1).returned)):
        return Answer(digest, measured_text.shortened(f"random, such as {text}"))
    text = measured_text.shortened(text)
    notes = [_rounded(bench, digest == before), _both_signs(bench), _transposed(bench, digest)]
    parts = [(digest, text), *(note for note in notes if note)]
    return Answer(" ".join(value for value, _ in parts), "".join(text for _, text in parts))


Note = tuple[str, str]  # a value that distinguishes operands, and its text


def _rounded(bench: Bench, same: bool) -> Note | None:
    """Notes that a narrower dtype, such as float16, would round numbers with more digits than those of x."""
    trial = bench.trial()
    if not same or trial.result is None or trial.result.element_size() >= trial.x.element_size():
        return None
    dtype = _dtype(trial.result)
    return dtype, f", rounded to {dtype}"


def _both_signs(bench: Bench) -> Note | None:
    """Notes the result for zero and negative numbers, if x has numbers between 0 and 1."""
    if bench.spec.values == "signed":
        return None
    try:
        tensors = bench.tensors(bench.trial(bench.other(values="signed")).returned)
    except Exception:
        return "refused", "; raises an error where x has 0 or less"
    numbers = measured_text.shortened(", ".join(measured_text.numbers(each, with_shape=False) for each in tensors))
    source = measured_text.numbers(bench.subject(bench.other(values="signed")).x, with_shape=False)
    return measured_text.digest(tensors), f"; for x = {source}: {numbers}"


def _transposed(bench: Bench, digest: str) -> Note | None:
    """Notes that the numbers differ if x is transposed: `as_strided` reads memory without regard to strides."""
    spec = bench.other(layout="transposed")
    if not bench.spec.contiguous or not bench.possible(spec):
        return None
    try:
        tensors = bench.tensors(bench.trial(spec).returned)
    except Exception:
        return None  # the row "runs" says so
    same = measured_text.close(digest, measured_text.digest(tensors))
    return None if same else ("other", "; other numbers for a transposed x")


@probe("warns", "result", everywhere=False)
def warns(bench: Bench) -> Answer:
    """Does the call emit a warning?"""
    emitted = bench.warnings()
    return Answer(emitted[0].partition(":")[0], "yes", emitted[0]) if emitted else Answer(False, "no")


@probe("changes a setting of PyTorch", "result", everywhere=False)
def changes_setting(bench: Bench) -> Answer:
    """Does the call leave a global setting, such as the grad mode, changed?"""
    names = ", ".join(bench.settings_changed())
    return Answer(names or False, names or "no")


@probe("is x itself", "result")
def same_object(bench: Bench) -> Answer:
    """Is the result x itself, the same Python object?"""
    trial = bench.trial()
    return yes(trial.returned is trial.x)


@probe("shares memory with x", "result", level="basic")
def shares_storage(bench: Bench) -> Answer | None:
    """Does the result share memory with x, so that a write to one changes the other?"""
    trial = bench.trial()
    shared = bench.overlap(trial.result if trial.result is not None else trial.returned, trial.x)
    return None if shared is None else yes(shared)


@probe("is a view of x", "result")
def is_view(bench: Bench) -> Answer | None:
    """Is the result a view of x, or of the base of x?"""
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


@probe("changes x", "result", level="basic")
def changes_source(bench: Bench) -> Answer:
    """Which properties of x does the call change?"""
    subject = bench.subject()
    before, numbers, version = _state(subject.x), subject.x.detach().clone(), bench.version(subject.x)
    bench.apply(subject)
    after = _state(subject.x)
    changed = [name for name in before if not _is_same(before[name], after[name])]
    if "shape" in changed:
        pass  # the numbers of two shapes can't be compared
    elif not equal(subject.x.detach(), numbers):
        changed.insert(0, "values")
    elif bench.version(subject.x) != version:
        changed.append("written with the same values")
    return Answer(", ".join(changed) or False, ", ".join(changed) or "no")


@probe("shape of the result", "result")
def result_shape(bench: Bench) -> Answer | None:
    """Which shape does the result have?"""
    tensors = bench.tensors(bench.trial().returned)
    if not tensors:
        return None
    shapes = [measured_text.shape_text(tuple(each.shape)) for each in tensors]
    if len(shapes) == 1:
        return Answer(shapes[0], shapes[0] if tuple(tensors[0].shape) != bench.spec.shape else f"{shapes[0]}, as x")
    text = f"{shapes[0]} each" if len(set(shapes)) == 1 else measured_text.shortened(", ".join(shapes))
    return Answer(text, text)


@probe("dtype of the result", "result")
def result_dtype(bench: Bench) -> Answer | None:
    """Which dtype does the result have?"""
    result = bench.trial().result
    return None if result is None else _same_or(_dtype(result), bench.spec.dtype)


@probe("dtype for an int64 x", "result", everywhere=False)
def integer_dtype(bench: Bench) -> Answer | None:
    """Which dtype does the result have for an int64 x?"""
    if not bench.may_require_grad:
        return None
    spec = bench.other(dtype="int64", requires_grad=False, leaf=True)
    return _dtype_or_error(bench, bench.subject(spec), "int64")


@probe("dtype with a float64 y", "result", everywhere=False)
def promoted_dtype(bench: Bench) -> Answer | None:
    """Which dtype does the result have if y is float64 and x is not?"""
    if not bench.uses_y or bench.spec.dtype != "float32":
        return None
    subject = bench.subject()
    subject.y = subject.y.detach().double().requires_grad_(subject.y.requires_grad)
    return _dtype_or_error(bench, subject, "float32")


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


@probe("keeps the strides of x", "result")
def keeps_strides(bench: Bench) -> Answer | None:
    """Does the result have the strides that x had before the call? (Only if it has the shape of x.)"""
    subject = bench.subject()
    shape, strides = subject.x.shape, subject.x.stride()
    result = bench.apply(subject).result
    if result is None or not bench.strided(result) or result.shape != shape:
        return None
    relevant = [index for index, extent in enumerate(shape) if extent > 1]
    return yes(all(result.stride(index) == strides[index] for index in relevant))


def _state(x: Any) -> dict[str, object]:
    hooks = len(x._backward_hooks or ()) + len(getattr(x, "_post_accumulate_grad_hooks", None) or ())
    return {
        "shape": tuple(x.shape),
        "strides": x.stride(),
        "memory": x.data_ptr(),
        "dtype": x.dtype,
        "requires_grad": x.requires_grad,
        "grad_fn": x.grad_fn,
        ".grad": None if x.grad is None else x.grad.clone(),
        "retains_grad": x.retains_grad,
        "hooks": hooks,
    }


def _is_same(one: Any, other: Any) -> bool:
    if hasattr(one, "numel") and hasattr(other, "numel"):
        return equal(one, other)
    return one is other or (not hasattr(one, "numel") and not hasattr(other, "numel") and bool(one == other))


def _dtype(result: Any) -> str:
    return str(result.dtype).removeprefix("torch.")


def _dtype_or_error(bench: Bench, subject: Any, source: str) -> Answer | None:
    try:
        result = bench.apply(subject).result
    except Exception as error:
        return measured_text.raised(error, "error", value="refused")
    return None if result is None else _same_or(_dtype(result), source)


def _same_or(dtype: str, source: str) -> Answer:
    return Answer(dtype, f"{dtype}, as x" if dtype == source else dtype)
