"""Samples what compared runs compare: values of the roots, leaves and gradients of each backward pass, and the
gradients that each optimizer step uses.

Small tensors are sampled whole, larger ones at evenly spread places, with two sums over all values. Any other
run samples nothing. Sampling draws no random number, moves no version and keeps no tensor.
"""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable
from types import FrameType

import torch

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.journal.sample_rows import PassRow, StepSampleRow, UncomparedRow
from tensorlens.records import reference
from tensorlens.tracer.isolation.guard import ErrorGuard, safe_text
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch, has_torch_dispatch
from tensorlens.tracer.isolation.torch_originals import (
    absolute,
    arange,
    cat,
    detach,
    is_complex,
    numel,
    reshape,
    some,
    stack,
    to,
    tolist,
    total,
    view_as_real,
)
from tensorlens.tracer.recording.recorder import Recorder

WHOLE = 4096  # values of a gradient or root that are kept; of a leaf, FEW
FEW = 64
BUDGET = 4_000_000  # values kept of a run; beyond, FEW of each tensor

Sample = tuple[tuple[int, ...], str, bytes]  # shape, dtype, values as doubles
Ended = Callable[[object, list[torch.Tensor], bool], None]


class Comparison:
    """Reports that a check of `--reference` failed itself. The check counts as not done; the recording is complete."""

    def __init__(self, rows: RowBuffer, checks: str = reference.PASSES) -> None:
        self._rows = rows
        self._checks = checks

    def internal_error(self, what: str, error: Exception, _frame: FrameType | None = None) -> None:
        why = f"the check itself failed at {what} ({type(error).__name__}: {safe_text(error)})"
        self._rows.write(UncomparedRow, self._checks, why)


class GradientSamples:
    """Writes a row after each backward pass, and one at each optimizer step."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.twin_of: Callable[[torch.Tensor], torch.Tensor | None] | None = None  # gives it in double precision
        self._guard = ErrorGuard(Comparison(recorder.rows), "the values of a backward pass")
        self._left = BUDGET
        self._passes = 0
        self._steps = 0
        self._added: dict[int, int] = {}  # tensor id -> passes that added to its gradient
        self._optimizers: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()
        self._numbers: dict[int, int] = {}  # tensor id -> place among all that had a gradient, the same in both runs

    def start(self, roots: list[torch.Tensor]) -> Ended:
        """Samples the roots and leaves as a pass starts. Returns a function to call when the pass ends."""
        if self._passes >= reference.MOST_SAMPLED:
            return _unsampled
        self._passes += 1
        with self._guard, self._recorder.quiet(), torch.no_grad():
            begins = tuple(self._sample(root, WHOLE) for root in roots)
            leaves = {number: self._sample(leaf, FEW) for number, leaf in self._leaves()}
            return self._end(begins, leaves, self._filled())
        return _unsampled

    def _end(
        self, begins: tuple[Sample | None, ...], leaves: dict[int, Sample | None], filled: dict[int, tuple[int, int]]
    ) -> Ended:
        def end(result: object, requested: list[torch.Tensor], failed: bool) -> None:
            with self._guard, self._recorder.quiet(), torch.no_grad():
                for number, state in self._filled().items():
                    if state != filled.get(number):
                        self._added[number] = self._added.get(number, 0) + 1 if number in filled else 1
                found = self._gradients(result, requested)
                samples = tuple((at, n, leaves.get(n), self._sample(gradient, WHOLE)) for at, n, gradient in found)
                exact = tuple((at, self._exact(gradient)) for at, _, gradient in found) if self.twin_of else ()
                self._recorder.rows.write(PassRow, begins, samples, failed, exact)

        return end

    def _filled(self) -> dict[int, tuple[int, int]]:
        """Returns (object, version) of each leaf's gradient that has a value other than zero."""
        gradients = ((number, leaf.grad) for number, leaf in self._leaves() if leaf.is_leaf)
        return {
            number: (id(gradient), gradient._version)
            for number, gradient in gradients
            if gradient is not None and not has_torch_dispatch(gradient) and bool(some(gradient))
        }

    def made(self, optimizer: torch.optim.Optimizer) -> None:
        """Numbers an optimizer."""
        self._optimizers.setdefault(optimizer, len(self._optimizers))

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Writes the gradients that a step uses."""
        self._steps += 1
        if self._steps > reference.MOST_SAMPLED:
            return
        self.made(optimizer)
        with self._guard, MutedDispatch(), self._recorder.quiet(), torch.no_grad():
            samples: list[tuple[int, Sample | None, int]] = []
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    number, gradient = self._recorder.tensor_ids.id_of(parameter), parameter.grad
                    sample = None if gradient is None else self._sample(gradient, WHOLE)
                    samples.append((number, sample, 0 if gradient is None else self._added.get(number, 0)))
            self._recorder.rows.write(StepSampleRow, self._optimizers[optimizer], tuple(samples))

    def _leaves(self) -> list[tuple[int, torch.Tensor]]:
        alive = [(number, ref()) for number, ref in list(self._recorder.leaves.items())]
        return [(number, tensor) for number, tensor in alive if tensor is not None]

    def _gradients(self, result: object, requested: list[torch.Tensor]) -> list[tuple[int, int, torch.Tensor]]:
        """Returns (place, tensor id, gradient) of leaves and of `autograd.grad`'s results."""
        found: list[tuple[int, int, torch.Tensor]] = []
        for number, tensor in self._leaves():
            gradient = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
            if gradient is not None:
                found.append((self._numbers.setdefault(number, len(self._numbers)), number, gradient))
        if isinstance(result, tuple):  # of `autograd.grad`; places below zero are its own
            for position, (tensor, gradient) in enumerate(zip(requested, result, strict=False), start=1):
                if isinstance(gradient, torch.Tensor):
                    found.append((-position, self._recorder.tensor_ids.id_of(tensor), gradient))
        return found

    def _exact(self, gradient: torch.Tensor) -> Sample | None:
        """Samples a gradient as it was computed in double precision. The sample has the program's dtype."""
        twin = None if self.twin_of is None else self.twin_of(gradient)
        sample = None if twin is None else self._sample(twin, WHOLE)
        return None if sample is None else (sample[0], _name(gradient.dtype), sample[2])

    def _sample(self, tensor: torch.Tensor, most: int) -> Sample | None:
        """Returns the values of a tensor, or None if they can't be read."""
        if has_torch_dispatch(tensor):
            return None
        most = most if self._left > 0 else FEW
        try:
            values = _values(detach(tensor), most)
        except (RuntimeError, NotImplementedError, TypeError):
            return None
        self._left -= len(values)
        return tuple(tensor.shape), _name(tensor.dtype), array("d", values).tobytes()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _unsampled(result: object, requested: list[torch.Tensor], failed: bool) -> None:
    """Ends a pass that is not compared."""


def _values(tensor: torch.Tensor, most: int) -> list[float]:
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if is_complex(tensor):
        tensor = view_as_real(tensor.resolve_conj())
    flat = reshape(tensor, (-1,))
    if numel(flat) <= most:
        values: list[float] = tolist(to(flat, "cpu", torch.float64))
        return values
    places = arange(most, device=flat.device) * numel(flat) // most
    sums = stack([total(flat, dtype=torch.float64), total(absolute(flat), dtype=torch.float64)])
    picked: list[float] = tolist(cat([to(flat[places], torch.float64), sums]))
    return picked
