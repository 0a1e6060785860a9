"""Compares the gradients of a run with those of a second run, in which saved tensors are copies (`--reference`)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isnan, nan, prod
from typing import Any

from tensorlens.records.fields import TensorId

MOST_SAMPLED = 1000  # backward passes, and optimizer steps, of a run that are sampled
SHOWN = 6  # values of a gradient that a report shows
SUMS = 2  # sums over all values, at the end of a partial sample
CLOSE = {"float64": 1e-8, "float32": 1e-4, "complex128": 1e-8, "complex64": 1e-4}  # relative, from rounding alone
STRICT = 0.02  # the share of `CLOSE` allowed where a pass starts: rounding errors grow on the way back
FLOOR = 1e-5  # added to the size of a gradient, which may be almost zero
COARSE = 2e-2  # what `CLOSE` is for half precision
PASSES, FORMULAS = "the gradients of two runs", "the `backward` of custom Functions"
"""The checks of `--reference`, as a gap names them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A gradient that differs in the run with copies."""

    backward: int  # index of the event of the pass
    tensor: TensorId
    largest: float  # the largest absolute difference
    relative: float  # that, divided by the largest absolute value of the right gradient
    start: int  # where the shown values begin in the flattened gradient
    got: tuple[float, ...]  # the shown values of this run; empty: it has no such gradient
    right: tuple[float, ...]  # those of the run with copies; empty: it has no such gradient
    values: int  # number of values of the gradient


@dataclass(frozen=True, slots=True)
class Reference:
    """The result of the comparison with the run with copies."""

    compared: tuple[int, ...] = ()  # indices of the compared passes' events
    differences: tuple[Difference, ...] = ()  # all in the last of those passes
    reason: str = ""  # why later passes are not compared; "" if all are


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of a tensor: all of them, or some that are evenly spread, followed by sums over all."""

    shape: tuple[int, ...]
    dtype: str
    values: tuple[float, ...]

    @property
    def size(self) -> int:
        return prod(self.shape) * (2 if self.dtype.startswith("complex") else 1)

    @property
    def whole(self) -> bool:
        return len(self.values) == self.size

    @property
    def shown_of(self) -> int:
        """The number of values that are elements of the tensor, not sums."""
        return self.size if self.whole else len(self.values) - SUMS


@dataclass(frozen=True, slots=True)
class Pass:
    """The samples of one backward pass in one run.

    A value of `gradients` is (tensor, its values before the pass, its gradient). The keys number the tensors in the
    order of their first gradients, so they are the same in both runs.
    """

    index: int
    roots: tuple[Sample | None, ...]
    gradients: dict[int, tuple[int, Sample | None, Sample | None]]
    failed: bool
    exact: dict[int, Sample] = field(default_factory=dict)  # gradients in double precision, where they are computed


@dataclass(frozen=True, slots=True)
class StepSample:
    """The gradients that one step of an optimizer uses.

    A value of `gradients` is (tensor, its gradient, the number of backward passes that added to it since it was empty
    or zero), in the order of the optimizer's parameters.
    """

    index: int  # of the last event before it
    optimizer: int  # the optimizers are numbered in the order in which they are made
    gradients: tuple[tuple[int, Sample | None, int], ...]
    parameters: tuple[TensorId, ...] = ()  # the tensors again; in `Reader.stepped`, with the numbers of the trace


def sampled_step(index: int, optimizer: int, gradients: Any) -> StepSample:
    """Makes the `StepSample` of a row of the journal."""
    samples = tuple((tensor, _sample(raw), passes) for tensor, raw, passes in gradients)
    return StepSample(index, optimizer, samples, tuple(tensor for tensor, _, _ in gradients))


def passed(index: int, roots: Any, gradients: Any, failed: bool, exact: Any) -> Pass:
    """Makes the `Pass` of a row of the journal."""
    by_place = {place: (tensor, _sample(leaf), _sample(found)) for place, tensor, leaf, found in gradients}
    in_double = {place: sample for place, raw in exact if (sample := _sample(raw)) is not None}
    return Pass(index, tuple(map(_sample, roots)), by_place, failed, in_double)


def _sample(raw: Any) -> Sample | None:
    return None if raw is None else Sample(raw[0], raw[1], tuple(array("d", raw[2])))


def compare(first: Sequence[Pass], second: Sequence[Pass]) -> Reference:
    """Compares the passes of both runs. It stops at the first difference, and where the runs compute different
    things."""
    compared: list[int] = []
    for one, other in zip(first, second, strict=False):
        reason = _why_incomparable(one, other)
        if reason:
            return Reference(tuple(compared), (), reason)
        if one.failed:
            continue
        compared.append(one.index)
        found = tuple(differences(one, other))
        if found:
            return Reference(tuple(compared), found, "an earlier gradient of this run differs already")
    if len(first) != len(second):
        counts = f"{len(first)} and {len(second)}"
        return Reference(tuple(compared), (), f"the two runs have different numbers of backward passes, {counts}")
    return Reference(tuple(compared), ())


def attach(first: Any, second: Any) -> None:
    """Adds the result of the comparison to `first`, the reader of the first run."""
    unchecked = second.unchecked | first.unchecked
    compared = compare(first.passes, second.passes)
    if PASSES in unchecked and not compared.differences:
        compared = replace(compared, reason=unchecked[PASSES])
    first.reference = compared
    first.facts["formulas"] = second.facts["formulas"]
    if FORMULAS in unchecked:
        first.note_gap(unchecked[FORMULAS])


def distance(got: Sample | None, right: Sample | None) -> tuple[float, float] | None:
    """Returns the largest difference of two gradients, absolute and relative; None if they are equal but for rounding.

    A gradient that only one of two runs has, or that has another shape there, differs by infinity.
    """
    if got is None or right is None or (got.shape, got.dtype) != (right.shape, right.dtype):
        return None if got is right else (inf, inf)
    off = _different_positions(got, right)
    if not off:
        return None
    found = _difference(0, 0, got, right, off)
    return found.largest, found.relative


def start_alike(one: Pass, other: Pass) -> bool:
    """Returns whether two passes start from the same values."""
    pairs = zip(one.roots, other.roots, strict=False)
    return len(one.roots) == len(other.roots) and all(_close(before, after) for before, after in pairs)


def have_same_gradients(one: Pass, other: Pass) -> bool:
    """Returns whether two passes gave the same gradients, but for rounding."""
    return not any(differences(one, other))


def gradient_count(one: Pass) -> int:
    """Counts the tensors that had a gradient after a pass."""
    return sum(gradient is not None for _, _, gradient in one.gradients.values())


def _why_incomparable(one: Pass, other: Pass) -> str:
    """Returns why two passes can't be compared; "" if they start from the same values."""
    if one.failed != other.failed:
        return f"the {'first' if one.failed else 'second'} run only raised in this pass"
    if len(one.roots) != len(other.roots):
        return "the two runs start this pass from different tensors"
    for before, after in zip(one.roots, other.roots, strict=True):
        if not _close(before, after):
            return f"the two runs are different: this pass starts from {_shown(before)} in one, {_shown(after)} in two"
    for place in one.gradients.keys() & other.gradients.keys():
        if not _close(one.gradients[place][1], other.gradients[place][1]):
            return "the two runs are different: a leaf has other values before this pass"
    return ""


def _shown(sample: Sample | None) -> str:
    return "nothing" if sample is None else ", ".join(f"{value:.6g}" for value in sample.values[:SHOWN])


def _close(one: Sample | None, other: Sample | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.shape, one.dtype) == (other.shape, other.dtype) and not _different_positions(one, other, STRICT)


def _different_positions(one: Sample, other: Sample, share: float = 1.0) -> list[int]:
    """Returns the positions of values that differ by more than a `share` of what rounding explains.

    If only the sums differ, it returns the position after the values.
    """
    most = other.shown_of
    size = max((abs(value) for value in other.values[:most] if isfinite(value)), default=0.0)
    relative = CLOSE.get(one.dtype, COARSE) * share
    off = [
        n
        for n, (a, b) in enumerate(zip(one.values[:most], other.values[:most], strict=True))
        if not (a == b or abs(a - b) <= relative * (size + FLOOR) or (isnan(a) and isnan(b)))
    ]
    if off or other.whole:
        return off
    ours, theirs = one.values[most:], other.values[most:]
    return [most] if any(abs(a - b) > relative * theirs[1] for a, b in zip(ours, theirs, strict=True)) else []


def differences(one: Pass, other: Pass) -> Iterator[Difference]:
    """Yields the gradients of a pass that differ in another run by more than rounding explains."""
    for place in sorted(one.gradients.keys() | other.gradients.keys()):
        tensor, _, got = one.gradients.get(place, (None, None, None))
        _, _, right = other.gradients.get(place, (None, None, None))
        if tensor is None or (got is None and right is None):
            continue  # the first run met no such tensor
        if got is None or right is None or (got.shape, got.dtype) != (right.shape, right.dtype):
            yield _difference_of_shape(one.index, tensor, got, right)
        elif off := _different_positions(got, right):
            yield _difference(one.index, tensor, got, right, off)


def _difference_of_shape(index: int, tensor: int, got: Sample | None, right: Sample | None) -> Difference:
    """Returns the difference of a gradient that only one run has, or whose shape or dtype is not the same in both."""
    sizes = [max(map(abs, sample.values), default=0.0) for sample in (got, right) if sample is not None]
    size = next(sample.size for sample in (got, right) if sample is not None)
    before, after = (() if sample is None else sample.values[:SHOWN] for sample in (got, right))
    return Difference(index, tensor, max(sizes), inf, 0, before, after, size)


def _difference(index: int, tensor: int, got: Sample, right: Sample, off: list[int]) -> Difference:
    most = got.shown_of
    gaps = [abs(got.values[n] - right.values[n]) for n in off if n < most] or [0.0]
    largest = nan if any(map(isnan, gaps)) else max(gaps)
    size = max((abs(value) for value in right.values[:most] if isfinite(value)), default=0.0)
    start = 0 if off[0] < SHOWN or off[0] >= most else off[0]
    before, after = (sample.values[start : min(start + SHOWN, most)] for sample in (got, right))
    place = start if got.whole else start * got.size // most
    return Difference(index, tensor, largest, largest / size if size else inf, place, before, after, got.size)
