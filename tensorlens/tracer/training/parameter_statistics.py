"""Measures one parameter over a run: the norms of its gradients, their zeros, and how far it has moved."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

import torch

from tensorlens.records.training import MOST_NORMS, ParameterMovement, ParameterStatistics
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import (
    clone,
    count_nonzero,
    detach,
    is_complex,
    norms,
    not_equal,
    numel,
    stack,
    tolist,
    view_as_real,
)
from tensorlens.tracer.training.reached_elements import LaterSteps, Reached, to_like

if TYPE_CHECKING:
    from tensorlens.tracer.recording._fast_path import FastPath

_HALF = (torch.float16, torch.bfloat16)
_ALWAYS_COUNTED = 8  # rounds whose zeros are counted: the first ones
_COUNTED_EACH, _OFTEN, _LATER_EACH = 8, 128, 64  # then every so many, up to this one; and every so many after it
_MOST_ROWS, _MOST_NAMED = 4096, 16  # of a matrix that are looked at, and that are named
_MOST_OPTIMIZERS = 8  # of one parameter, whose own steps are looked at


@dataclass(slots=True)
class Series:
    """A series of numbers, kept as at most `MOST_NORMS` means of equally many numbers in a row."""

    means: list[float] = field(default_factory=list)
    _each: int = 1
    _sum: float = 0.0
    _count: int = 0

    def add(self, value: float) -> None:
        self._sum += value
        self._count += 1
        if self._count == self._each:
            self.means.append(self._sum / self._count)
            self._sum, self._count = 0.0, 0
            if len(self.means) == MOST_NORMS:
                self.means = [(a + b) / 2 for a, b in zip(self.means[::2], self.means[1::2], strict=True)]
                self._each *= 2

    def all(self) -> tuple[float, ...]:
        return (*self.means, *([self._sum / self._count] if self._count else []))


class MeasuredParameter:
    """One parameter. A round is a step of an optimizer that holds it or, if none does, a backward pass."""

    __slots__ = ("_counted", "_elements", "_half", "_kept", "_later", "_left", "_norms", "_reached", "_start",
                 "_steppers", "_zeros", "filled", "first_nonfinite", "half_steps", "nonfinite", "number", "ref",
                 "rounds", "stepped", "zero")  # fmt: skip

    def __init__(self, number: int, ref: weakref.ref[torch.Tensor]) -> None:
        self.number, self.ref = number, ref
        self.stepped = False
        self._restart()

    def _restart(self) -> None:
        self.rounds = self.filled = self.zero = self.nonfinite = self.first_nonfinite = 0
        self._norms = Series()
        self._zeros, self._counted = 0, 0  # elements
        self._elements = 0
        self._start: torch.Tensor | None = None  # a copy of the values before the first round
        self._half: torch.Tensor | None = None  # a copy of the first values in half precision
        self._left: torch.Tensor | None = None  # the elements that have had another value in half precision
        self.half_steps, self._kept = 0, (0, 0)
        self._reached = Reached()
        self._steppers: list[int] = []  # optimizers that have stepped it: the last one comes last
        self._later: LaterSteps | None = None

    def begin_round(self, parameter: torch.Tensor, stepped: bool, optimizer: int | None = None) -> None:
        """Counts a round. The first step of an optimizer begins anew: the passes before it have their gradients here
        too."""
        self.expect_round(parameter, stepped)
        if optimizer is not None and self._steppers[-1:] != [optimizer]:
            self._change_stepper(parameter, optimizer)
        self.rounds += 1
        if parameter.dtype in _HALF:
            if self._half is None or self._half.dtype != parameter.dtype:
                is_first = self._start is not None and self._start.dtype == parameter.dtype
                self._half = self._start if is_first else _copy(parameter)
                self.half_steps, self._left = 0, None
            self._note_left(parameter)
            self.half_steps += 1

    def _change_stepper(self, parameter: torch.Tensor, optimizer: int) -> None:
        """Looks at the steps of an optimizer alone if others have stepped a parameter before, and it has not."""
        is_new, is_first = optimizer not in self._steppers, not self._steppers
        self._later = None
        if is_new and len(self._steppers) < _MOST_OPTIMIZERS:
            self._steppers.append(optimizer)
            if not is_first and is_measurable(parameter):
                self._later = LaterSteps(optimizer, clone(detach(parameter)), self._reached)
        elif not is_new:
            self._steppers.remove(optimizer)
            self._steppers.append(optimizer)

    def _note_left(self, parameter: torch.Tensor) -> None:
        """Notes the elements without their first value after 1, 2, 4, 8, ... rounds: some come back to it later."""
        rounds, first = self.half_steps, self._half
        if first is None or rounds == 0 or rounds & (rounds - 1) or not _is_like(first, parameter):
            return
        left = not_equal(detach(parameter), to_like(first, parameter))
        self._left = left if self._left is None else left | to_like(self._left, left)

    def expect_round(self, parameter: torch.Tensor, stepped: bool) -> None:
        """Keeps a copy of the values before the first round, which may be measured only when it has ended."""
        if stepped and not self.stepped:
            self.stepped = True
            self._restart()
        if self.rounds == 0 and self._start is None and is_measurable(parameter):
            self._start = clone(detach(parameter))
            self._elements = numel(parameter)

    def note(self, gradient: torch.Tensor, norm: float) -> bool:
        """Adds the gradient of this round, with its L2 norm. Returns whether it consists of zeros."""
        self.filled += 1
        counted = self.filled <= _ALWAYS_COUNTED or self.filled % _distance(self.filled - 1) == 0
        nonzero = int(count_nonzero(gradient)) if counted or norm == 0 else 1  # the norm of tiny values may be zero
        if counted:
            self._counted += numel(gradient)
            self._zeros += numel(gradient) - nonzero
        self.zero += nonzero == 0
        if isfinite(norm):
            self._norms.add(norm)
        else:
            self.nonfinite += 1
            self.first_nonfinite = self.first_nonfinite or self.rounds
        for reached in (self._reached, self._later) if nonzero else ():
            if reached is not None:
                reached.note(gradient, nonzero if counted else None)
        return nonzero == 0

    @property
    def rounds_before_count(self) -> int:
        """Returns how many rounds with a gradient come before the next one whose zeros are counted."""
        each = _distance(self.filled)
        return 0 if self.filled < _ALWAYS_COUNTED else each - 1 - self.filled % each

    @property
    def is_never_finite(self) -> bool:
        """Returns whether each gradient had an infinity or NaN."""
        return 0 < self.filled == self.nonfinite

    @property
    def has_unreached(self) -> bool:
        """Returns whether some elements had no gradient yet, so far as it is known."""
        return not self._reached.is_full or (self._later is not None and not self._later.is_full)

    def note_steady(self, values: Sequence[float]) -> None:
        """Adds rounds with a gradient of these norms, none of them zero or infinite. `reach` has got the gradients."""
        self.rounds += len(values)
        self.filled += len(values)
        for norm in values:
            self._norms.add(norm)

    def reach(self, gradient: torch.Tensor, in_c: FastPath | None) -> None:
        """Notes the elements of a gradient that are not zero."""
        self._reached.add(gradient, in_c)
        if self._later is not None:
            self._later.add(gradient, in_c)

    def statistics(self, number: int) -> ParameterStatistics:
        """Returns what was measured, as a fact without an index."""
        share = self._zeros / self._counted if self._counted else 0.0
        counts = (self.rounds, self.filled, self.zero, self.nonfinite)
        if self._half is not None and (parameter := self.ref()) is not None:
            self._kept = self._keeping(parameter)
        half = self._kept if self._half is not None else (0, 0)
        values = share, self._norms.all(), self.first_nonfinite
        reached = self._reached.elements
        rows = _rows_left(reached) if isinstance(reached, torch.Tensor) else ()
        return ParameterStatistics(0, number, self.number, *counts, *values, *half, rows)

    def movement(self, number: int) -> ParameterMovement | None:
        """Compares the values with those before the first round; None if they can't be read any more."""
        parameter, start = self.ref(), self._start
        if parameter is None or start is None or not is_measurable(parameter) or parameter.shape != start.shape:
            return None
        now = to_like(detach(parameter), start)
        changed = not_equal(now, start)
        size, distance = tolist(stack(list(norms([as_real(start), as_real(now - start)], 2))))
        unreached, moved = self._reached.left(changed)
        last = (-1, 0, 0) if self._later is None else self._later.moved(detach(parameter))
        return ParameterMovement(0, number, self.number, size, distance, self._elements, unreached, moved, last)

    def _keeping(self, parameter: torch.Tensor) -> tuple[int, int]:
        """Counts the rounds in half precision, and the elements that had a gradient and were never seen without their
        first value."""
        first = self._half
        if first is None or self._reached.elements is False or not _is_like(first, parameter):
            return self.half_steps, 0
        same = ~not_equal(detach(parameter), to_like(first, parameter))
        if self._left is not None:
            same &= ~to_like(self._left, same)
        reached = self._reached.elements
        kept = same & to_like(reached, same) if isinstance(reached, torch.Tensor) else same
        return self.half_steps, int(count_nonzero(kept))


def _rows_left(reached: torch.Tensor) -> tuple[int, ...]:
    """Returns the first rows of a matrix without any element that a gradient has reached."""
    if reached.dim() != 2 or not 1 < reached.shape[0] <= _MOST_ROWS:
        return ()
    counts: list[int] = tolist(count_nonzero(reached, 1))
    return tuple(row for row, count in enumerate(counts) if count == 0)[:_MOST_NAMED]


def _is_like(first: torch.Tensor, parameter: torch.Tensor) -> bool:
    """Returns whether a copy can be compared with a parameter."""
    return is_measurable(parameter) and first.shape == parameter.shape and first.dtype == parameter.dtype


def _distance(filled: int) -> int:
    """Returns how far apart the rounds are whose zeros are counted, after so many with a gradient."""
    return _COUNTED_EACH if filled < _OFTEN else _LATER_EACH


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor whose L2 norm is that of `tensor`, in a dtype that does not overflow soon."""
    tensor = view_as_real(tensor.resolve_conj()) if is_complex(tensor) else tensor
    return tensor.float() if tensor.dtype in _HALF else tensor


def gradient_norms(gradients: Sequence[torch.Tensor]) -> Iterable[float]:
    """Returns the L2 norm of each gradient; one fused call and one wait for each dtype and device."""
    found = [0.0] * len(gradients)
    kinds: dict[tuple[torch.dtype, torch.device], list[int]] = {}
    for place, gradient in enumerate(gradients):
        kinds.setdefault((gradient.dtype, gradient.device), []).append(place)
    for places in kinds.values():
        values: list[float] = tolist(stack(list(norms([as_real(gradients[place]) for place in places], 2))))
        for place, value in zip(places, values, strict=True):
            found[place] = value
    return found


def _copy(tensor: torch.Tensor) -> torch.Tensor | None:
    return clone(detach(tensor)) if is_measurable(tensor) else None
