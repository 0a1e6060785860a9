"""Compares the gradients of a compiled program with those of a run that compiles nothing (`--reference=eager`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt

from tensorlens.records.fields import NonNegative
from tensorlens.records.reference import Difference, Pass, Sample, differences, distance

EPSILON = {"float64": 2.3e-16, "float32": 1.2e-7, "complex128": 2.3e-16, "complex64": 1.2e-7, "float16": 9.8e-4}
COARSEST = 7.9e-3  # of bfloat16
FARTHER = 1000.0  # a gradient is wrong if it is so many times as far from double precision as the eager one
NOT_FINITE = "without compilation, the next one has a gradient that is not finite, which rounding may decide"
OTHER_LEAF = "a leaf has other values in one of the two runs before this pass"


@dataclass(frozen=True, slots=True)
class EagerComparison:
    """The result of the comparison of a program with the same program that compiles nothing."""

    compared: tuple[int, ...] = ()  # indices of the compared passes' events
    differences: tuple[Difference, ...] = ()  # all in the last of those passes; `right` is the eager run's
    reason: str = ""  # why later passes are not compared; "" if all are
    in_double: bool = False  # double precision decides, for each of these, that it is more than rounding
    exact: tuple[float, ...] = ()  # what the first difference shows, in double precision
    rounding: NonNegative = 0  # gradients that differ by what double precision shows to be rounding
    random: bool = False  # the compiled run draws the eager run's random numbers; its own are others
    functions: tuple[int, ...] = ()  # `Compiled.number`: compiled alone, it has other gradients in this pass
    hooks: tuple[int, ...] = ()  # `LateHook.number`: the eager run has the compiled gradients without these
    raised: str = ""  # the first run raised; what the eager run did


def compare_with_eager(got: Sequence[Pass], eager: Sequence[Pass]) -> EagerComparison:
    """Compares the passes of a compiled run with those of an eager one, up to the first that differs."""
    compared: list[int] = []
    rounding = 0
    for one, other in zip(got, eager, strict=False):
        reason = _why_incomparable(one, other, is_first=not compared)
        if reason:
            return EagerComparison(tuple(compared), (), reason, rounding=rounding)
        if one.failed:
            continue
        judge = _Judge(one, other)
        found = list(differences(one, other))
        if any(map(judge.is_right_infinite, found)):
            return EagerComparison(tuple(compared), (), NOT_FINITE, rounding=rounding)
        compared.append(one.index)
        wrong = tuple(each for each in found if judge.is_wrong(each))
        rounding += len(found) - len(wrong)
        if wrong:
            first = max(wrong, key=lambda each: each.relative)
            known = judge.exact_of(first)
            shown = () if known is None else known.values[first.start : first.start + len(first.right)]
            later = "an earlier gradient of this run differs already"
            return EagerComparison(tuple(compared), wrong, later, known is not None, shown, rounding)
    reason = ""
    if len(got) != len(eager):
        reason = f"the two runs have different numbers of backward passes, {len(got)} and {len(eager)}"
    return EagerComparison(tuple(compared), (), reason, rounding=rounding)


def agree_in(number: int, one: Sequence[Pass], other: Sequence[Pass]) -> bool:
    """Returns whether two runs have the same gradients up to a pass, and in it."""
    return agreeing(one[: number + 1], other[: number + 1]) == number + 1


def agreeing(one: Sequence[Pass], other: Sequence[Pass]) -> int:
    """Counts the passes at the beginning of two runs in which they have the same gradients."""
    pairs = enumerate(zip(one, other, strict=False))
    differing = (n for n, (a, b) in pairs if a.failed != b.failed or any(differences(a, b)))
    return next(differing, min(len(one), len(other)))


def labelled_as(passes: Sequence[Pass], first: Sequence[Pass]) -> list[Pass]:
    """Returns the passes of another run with the events and tensors of the first run."""
    found = []
    for one, own in zip(passes, first, strict=False):
        gradients = {
            place: (own.gradients[place][0], leaf, gradient)
            for place, (_, leaf, gradient) in one.gradients.items()
            if place in own.gradients
        }
        found.append(replace(one, index=own.index, gradients=gradients))
    return found


def _why_incomparable(one: Pass, other: Pass, is_first: bool) -> str:
    if one.failed != other.failed:
        return f"only the {'compiled' if one.failed else 'eager'} run raised in this pass"
    for place in one.gradients.keys() & other.gradients.keys():
        (_, before, _), (_, after, _) = one.gradients[place], other.gradients[place]
        if (before is None) != (after is None):
            return OTHER_LEAF
        if before is not None and after is not None:
            is_same = (before.shape, before.dtype) == (after.shape, after.dtype)
            if not is_same or (is_first and distance(before, after) is not None):
                return OTHER_LEAF
    return ""


class _Judge:
    """Decides whether a difference in one pass is more than rounding."""

    def __init__(self, one: Pass, other: Pass) -> None:
        self._places = {tensor: place for place, (tensor, _, _) in one.gradients.items()}
        self._one, self._other = one, other
        self._nodes = max(other.index, 1)  # events before it: there are not many more nodes in the graph
        samples = [gradient for _, _, gradient in other.gradients.values() if gradient is not None]
        self._largest = max([1, *(sample.size for sample in samples)])

    def exact_of(self, found: Difference) -> Sample | None:
        """Returns the gradient in double precision, if it is known and finite."""
        exact = self._other.exact.get(self._places.get(found.tensor, 0))
        right = self._gradients(found)[1]
        if exact is None or right is None or exact.shape != right.shape or not all(map(isfinite, exact.values)):
            return None
        return exact

    def is_right_infinite(self, found: Difference) -> bool:
        """Returns whether the eager gradient has values that are infinite or NaN."""
        right = self._gradients(found)[1]
        return right is not None and not all(map(isfinite, right.values))

    def is_wrong(self, found: Difference) -> bool:
        """Returns whether a gradient is farther from double precision than the eager one, by far.

        The error of rounding is taken to grow with the number of calls and the square root of the number of values: a
        difference within that is not wrong. Beyond, it is, unless double precision says that it is rounding.
        """
        got, right = self._gradients(found)
        if got is None or right is None or found.relative == inf:
            return True
        bound = EPSILON.get(right.dtype, COARSEST) * self._nodes * sqrt(self._largest)
        if found.relative <= bound:
            return False
        exact = self.exact_of(found)
        return exact is None or not _error(got, exact) <= FARTHER * _error(right, exact)

    def _gradients(self, found: Difference) -> tuple[Sample | None, Sample | None]:
        place = self._places.get(found.tensor, 0)
        got, right = self._one.gradients.get(place), self._other.gradients.get(place)
        return (None if got is None else got[2]), (None if right is None else right[2])


def _error(one: Sample, exact: Sample) -> float:
    most = exact.shown_of
    return max((abs(a - b) for a, b in zip(one.values[:most], exact.values[:most], strict=False)), default=0.0)
