"""Gives probes their tools: they apply an operand to fresh inputs, write to tensors, and run backward."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.autograd import profiler
from torch.autograd.graph import saved_tensors_hooks

from tensorlens.compare.comparison_records import Answer, Input
from tensorlens.compare.probe import settings
from tensorlens.compare.probe.code import Code
from tensorlens.compare.probe.inputs import Subject, differentiable, dtype_of, enlarged, make, possible
from tensorlens.compare.probe.measured_text import numbers, without_places
from tensorlens.compare.probe.outcome import filler, first_tensor, overlap, strided, tensors_in, version, write
from tensorlens.compare.probe.saved_tensor_hooks import top_hooks


@dataclass(slots=True)
class Trial:
    """Fresh tensors, and what the operand `returned` for them. `result` is the first tensor in that, or None."""

    subject: Subject
    returned: Any
    result: torch.Tensor | None

    @property
    def x(self) -> torch.Tensor:
        return self.subject.x


def weight_like(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a leaf to multiply `tensor` by. Autograd then saves `tensor`, which becomes the leaf's gradient."""
    dtype = tensor.dtype if tensor.dtype.is_floating_point or tensor.dtype.is_complex else torch.get_default_dtype()
    return torch.full(tensor.shape, 2, dtype=dtype, device=tensor.device).requires_grad_()


def cotangent(output: torch.Tensor) -> torch.Tensor:
    """Returns a fixed random gradient for `output`. With ones, a softmax would seem to pass no gradient."""
    numbers = torch.randn(output.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return numbers.to(output.dtype).to(output.device)


def gradients(output: torch.Tensor, leaf: torch.Tensor, sent: torch.Tensor | None = None) -> torch.Tensor | None:
    """Runs backward from `output` and returns the leaf's gradient, or None. `sent` is the gradient of `output`; by
    default, its `cotangent`."""
    if not output.requires_grad:
        return None
    output = output if strided(output) else output.to_dense()
    leaf.grad = None
    torch.autograd.backward([output], [cotangent(output) if sent is None else sent])  # the whole graph, as users do
    return leaf.grad


def forget_gradient(leaf: torch.Tensor) -> None:
    leaf.grad = None


def allocated(action: Callable[[], object]) -> tuple[int, int]:
    """Returns the bytes that `action` allocates: the peak, and the bytes that its result keeps."""
    with profiler.profile(profile_memory=True) as profile:
        kept = action()
    now = most = 0
    for event in profile.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    del kept
    return most, now


@contextlib.contextmanager
def copies_saved() -> Iterator[None]:
    """Makes autograd save copies of tensors, so that later writes do not change the gradients."""
    with saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda tensor: tensor):
        yield


@contextlib.contextmanager
def without_copies() -> Iterator[None]:
    """Suspends `copies_saved` for a call such as `torch.func.grad`, which raises under saved tensor hooks."""
    hooks = top_hooks()
    if hooks is None:
        yield
        return
    torch._C._autograd._pop_saved_tensors_default_hooks()
    try:
        yield
    finally:
        torch._C._autograd._push_saved_tensors_default_hooks(*hooks)


@contextlib.contextmanager
def memory_filled() -> Iterator[None]:
    """Makes uninitialized memory hold the same numbers in every run."""
    with settings.kept():
        settings.fill_uninitialized()
        yield


def backward(roots: list[torch.Tensor]) -> None:
    """Runs backward from all roots, with ones as their gradients. The roots may have any shape and dtype."""
    torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])


def compare_gradients(got: list[torch.Tensor | None], right: list[torch.Tensor | None]) -> Answer:
    """Answers "fine", or "silently wrong" with the first pair of gradients that differs."""
    for actual, expected in zip(got, right, strict=True):
        if not _same(actual, expected):
            return Answer("silently wrong", f"silently wrong: gradient {numbers(actual)}, right is {numbers(expected)}")
    return Answer("fine", "fine")


def _same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and torch.allclose(one, other, equal_nan=True)


class Bench:
    """The tools of a probe: fresh inputs, the operand, and the functions of this module.

    A probe may change its tensors, since every measurement makes new ones.
    """

    overlap = staticmethod(overlap)
    write = staticmethod(write)
    version = staticmethod(version)
    weight_like = staticmethod(weight_like)
    backward = staticmethod(backward)
    gradients = staticmethod(gradients)
    cotangent = staticmethod(cotangent)
    ones = staticmethod(torch.ones_like)
    tensors = staticmethod(tensors_in)
    forget_gradient = staticmethod(forget_gradient)
    strided = staticmethod(strided)
    possible = staticmethod(possible)
    copies_saved = staticmethod(copies_saved)
    without_copies = staticmethod(without_copies)
    memory_filled = staticmethod(memory_filled)
    no_grad = torch.no_grad
    sequence = staticmethod(torch._C._autograd._get_sequence_nr)
    allocated = staticmethod(allocated)

    compare_gradients = staticmethod(compare_gradients)

    def __init__(self, code: Code, spec: Input, size: int = 1_000_000) -> None:
        self.spec = spec
        self.large = enlarged(spec, size)
        self.may_require_grad = differentiable(dtype_of(spec.dtype))
        self.uses_y = code.uses_y
        self._code = code

    def subject(self, spec: Input | None = None) -> Subject:
        return make(spec or self.spec)

    def apply(self, subject: Subject, seed: int = settings.SEED) -> Trial:
        """Runs the operand on `subject`, with the same random numbers each time.

        Restores the settings of PyTorch that the operand changed, since they would change what the probe measures.
        """
        settings.seed(seed)
        before = settings.snapshot()
        try:
            returned = self._code(subject)
        finally:
            settings.restore(before)
        return Trial(subject, returned, first_tensor(returned))

    def settings_changed(self) -> list[str]:
        """Returns the names of the settings of PyTorch that the operand leaves changed."""
        subject, before = self.subject(), settings.snapshot()
        try:
            self._code(subject)
            return [name for name in settings.changed(before) if name != settings.FILTERS]  # imports change them
        finally:
            settings.restore(before)

    def uninitialized(self) -> bool:
        """Returns whether the result has uninitialized elements, which PyTorch can fill with NaN."""
        plain, before = tensors_in(self.trial().returned), settings.snapshot()
        try:
            settings.fill_uninitialized()
            subject = self.subject()
            filled = tensors_in(self._code(subject))
        except Exception:
            return False
        finally:
            settings.restore(before)
        return any(
            one.shape == other.shape and bool((filler(one) & ~filler(other)).any())
            for one, other in zip(filled, plain, strict=False)
        )

    def other(self, **changes: Any) -> Input:
        """Returns the input of this bench with some properties changed."""
        return replace(self.spec, **changes)

    def trial(self, spec: Input | None = None) -> Trial:
        return self.apply(self.subject(spec))

    def warnings(self) -> list[str]:
        """Returns `UserWarning: ...` for each warning of the call, including those that PyTorch emits only once."""
        subject = self.subject()
        always = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.apply(subject)
        finally:
            torch.set_warn_always(always)
        return [f"{each.category.__name__}: {without_places(str(each.message))}" for each in caught]

    def of_size(self, size: int) -> Input:
        """Returns the input of this bench with about `size` elements."""
        return enlarged(self.spec, size)

    @property
    def bytes_of_large(self) -> int:
        return self.bytes_of(self.large)

    @staticmethod
    def elements(spec: Input) -> int:
        return math.prod(spec.shape)

    @staticmethod
    def bytes_of(spec: Input) -> int:
        return max(1, math.prod(spec.shape) * dtype_of(spec.dtype).itemsize)

    def settle_allocator(self) -> None:
        """Allocates and frees memory as the timed calls will: the C library's allocator then has adapted to them."""
        for _ in range(3):
            self.subject(self.large)

    def timed(self, subject: Subject) -> int:
        """Returns the nanoseconds of one call, including the work of a device."""
        function, arguments = self._code.function, self._code.arguments(subject)
        wait = self._wait()
        wait()
        began = time.perf_counter_ns()
        kept = function(*arguments)
        wait()
        ended = time.perf_counter_ns()
        del kept
        return ended - began

    def _wait(self) -> Callable[[], object]:
        kind = torch.device(self.spec.device).type
        module = getattr(torch, kind, None)
        return getattr(module, "synchronize", lambda: None)
