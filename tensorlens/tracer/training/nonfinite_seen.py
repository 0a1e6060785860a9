"""Notes the first loss, or gradient that a step uses, with an infinity or NaN. It costs one sum of each pass.

The first gradient of a parameter that no step changes in the run counts too: a script may skip the steps for NaN."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Protocol

import torch

from tensorlens.records.training import NonfiniteSeen
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import (
    detach,
    dtype_of,
    every,
    is_complex,
    isnan,
    item,
    numel,
    reshape,
    some,
    tolist,
    total,
)
from tensorlens.tracer.isolation.torch_originals import isfinite as finite
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.parameter_statistics import as_real

_KEPT = 4  # losses
_PLAIN = (torch.float32, torch.float64)


class Search(Protocol):
    """Searches for the operation behind what is seen: `nonfinite_search.py`, in a second run only."""

    def pass_begins(self, roots: Sequence[torch.Tensor]) -> Callable[[], None] | None: ...
    def explain_loss(self, root: torch.Tensor, counts: tuple[int, int]) -> None: ...
    def explain_gradient(self, leaf: int, gradient: torch.Tensor, counts: tuple[int, int]) -> Callable[[], None]: ...


class NonfiniteValues:
    """Looks at the losses and gradients of a run until the first that is not finite."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.search: Search | None = None
        self.found = False
        self.passes = 0
        self._losses: deque[float] = deque(maxlen=_KEPT)
        self._unused: tuple[int, Callable[[], None]] | None = None  # a parameter, and what writes about its gradient

    def pass_begins(self, roots: Sequence[torch.Tensor], steps: int) -> Callable[[], None] | None:
        """Looks at the roots of a pass. Returns a function to call when the pass has ended, if it is searched."""
        if self.found:
            return None
        self.passes += 1
        for root in roots:
            value = _sum(root)
            if value is not None and isfinite(value):
                self._losses.append(value)
            elif value is not None and self._is_bad_loss(root, steps):
                return None
        return None if self.search is None else self.search.pass_begins(roots)

    def _is_bad_loss(self, root: torch.Tensor, steps: int) -> bool:
        with torch.no_grad():
            if is_finite(root):  # only the sum is not
                return False
            self._see("loss", root, None, steps)
            if self.search is not None:
                self.search.explain_loss(root, (self.passes - 1, steps))
            return True

    def look_at(self, gradients: Iterable[tuple[int, torch.Tensor]], steps: int) -> None:
        """Looks at gradients, with their leaves, whose norms are not finite."""
        for leaf, gradient in gradients:
            if not self.found and not is_finite(gradient):
                self._see("gradient", gradient, leaf, steps)
                if self.search is not None:
                    self.search.explain_gradient(leaf, gradient, (self.passes, steps))()

    def keep_unused(self, gradients: Iterable[tuple[int, torch.Tensor]], steps: int) -> None:
        """Keeps the first of these gradients of parameters that an optimizer holds: it counts if none steps it."""
        for leaf, gradient in gradients:
            if self.found or self._unused is not None:
                return
            if not is_finite(gradient):
                self._unused = leaf, self._writing(leaf, gradient, steps)

    def _writing(self, leaf: int, gradient: torch.Tensor, steps: int) -> Callable[[], None]:
        kind, counts, losses = kind_of(gradient), (self.passes, steps), tuple(self._losses)
        explain = None if self.search is None else self.search.explain_gradient(leaf, gradient, counts)

        def write() -> None:
            self._recorder.rows.write_fact(NonfiniteSeen, "gradient", kind, leaf, *counts, losses)
            if explain is not None:
                explain()

        return write

    def end(self, is_unused: Callable[[int], bool]) -> None:
        """Writes about the gradient that no step has used, if there is nothing else that is not finite."""
        if not self.found and self._unused is not None and is_unused(self._unused[0]):
            self.found = True
            self._unused[1]()

    def _see(self, kind: str, tensor: torch.Tensor, leaf: int | None, steps: int) -> None:
        self.found = True
        counts = (self.passes, steps)
        self._recorder.rows.write_fact(NonfiniteSeen, kind, kind_of(tensor), leaf, *counts, tuple(self._losses))


def _sum(root: torch.Tensor) -> float | None:
    """Returns the sum of a tensor's elements; None if they can't be read or are always finite."""
    if type(root) is torch.Tensor and dtype_of(root) in _PLAIN and numel(root) == 1 and is_measurable(root):
        number: float = item(root)
        return number
    if not is_float(root):
        return None
    value: float = tolist(total(as_real(detach(root))))
    return value


def is_float(value: object) -> bool:
    """Returns whether a value is a tensor that may hold an infinity, and that can be read."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or is_complex(value)) and is_measurable(value)


def is_finite(tensor: torch.Tensor) -> bool:
    return bool(every(finite(tensor)))


def kind_of(tensor: torch.Tensor) -> str:
    """Says what is not finite in a tensor: "nan" if something is, else "inf", or "-inf" if all infinities are so."""
    tensor = as_real(detach(tensor))
    if bool(some(isnan(tensor))):
        return "nan"
    return "inf" if bool(some(reshape(tensor, (-1,)) == float("inf"))) else "-inf"
