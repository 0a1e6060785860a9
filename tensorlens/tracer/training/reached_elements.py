"""Notes which elements of a parameter have had a gradient, and whether the others move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import clone, count_nonzero, every, not_equal, numel, to

if TYPE_CHECKING:
    from tensorlens.tracer.recording._fast_path import FastPath

_SMALL = 512  # elements: below, one operation takes less time than two


class Reached:
    """The elements of a parameter that had a gradient other than zero."""

    __slots__ = ("elements",)

    def __init__(self) -> None:
        self.elements: torch.Tensor | bool = False  # True: all; False: none

    @property
    def is_full(self) -> bool:
        return self.elements is True

    def add(self, gradient: torch.Tensor, in_c: FastPath | None = None) -> None:
        """Adds the elements of a gradient that are not zero. The compiled fast path does it if it is given and can."""
        if self.elements is False:
            self.elements = not_equal(gradient, 0)
        elif isinstance(self.elements, torch.Tensor) and (in_c is None or not in_c.mark(self.elements, gradient)):
            self.elements.logical_or_(gradient if numel(gradient) < _SMALL else to(gradient, torch.bool))

    def note(self, gradient: torch.Tensor, nonzero: int | None) -> None:
        """Adds a gradient with so many elements that are not zero; None: they were not counted."""
        if self.elements is True:
            return
        if nonzero == numel(gradient):
            self.elements = True
            return
        self.add(gradient)
        if nonzero is not None and isinstance(self.elements, torch.Tensor) and every(self.elements):
            self.elements = True

    def left(self, changed: torch.Tensor) -> tuple[int, int]:
        """Counts the elements without a gradient, and those of them that have changed."""
        if self.elements is False:
            return numel(changed), int(count_nonzero(changed))
        if not isinstance(self.elements, torch.Tensor):
            return 0, 0
        rest = ~to_like(self.elements, changed)
        return int(count_nonzero(rest)), int(count_nonzero(changed & rest))


class LaterSteps(Reached):
    """The steps of the last optimizer of a parameter, after those of others: what it reaches, and moves."""

    __slots__ = ("_before", "_start", "optimizer")

    def __init__(self, optimizer: int, start: torch.Tensor, before: Reached) -> None:
        super().__init__()
        self.optimizer, self._start = optimizer, start  # a copy of the values before its first step
        elements = before.elements
        self._before = clone(elements) if isinstance(elements, torch.Tensor) else elements

    def moved(self, values: torch.Tensor) -> tuple[int, int, int]:
        """Returns the number of the optimizer, how many elements it left without a gradient, and how many of these
        have changed, although others gave them one before: rows of an embedding that no batch uses have none."""
        start, before = self._start, self._before
        if before is False or not is_measurable(values) or values.shape != start.shape:
            return -1, 0, 0
        changed = not_equal(to_like(values, start), start)
        if isinstance(before, torch.Tensor):
            changed &= to_like(before, changed)
        return self.optimizer, *self.left(changed)


def to_like(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns a tensor on the device of another, with its dtype."""
    return tensor if tensor.device == other.device and tensor.dtype == other.dtype else tensor.to(other)
