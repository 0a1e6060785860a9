"""One operand on one kind of input: how a probe applies it, looks at the result, writes it and runs backward."""

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


@dataclass(slots=True)
class Trial:
    """Fresh tensors, and what the operand returned for them. `result` is its first tensor, None if it has none."""

    subject: Subject
    returned: Any
    result: torch.Tensor | None

    @property
    def x(self) -> torch.Tensor:
        return self.subject.x


def weight_like(tensor: torch.Tensor) -> torch.Tensor:
    """A leaf to multiply `tensor` by: autograd then keeps `tensor`, whose values are the leaf's gradient."""
    dtype = tensor.dtype if tensor.dtype.is_floating_point or tensor.dtype.is_complex else torch.get_default_dtype()
    return torch.full(tensor.shape, 2, dtype=dtype, device=tensor.device).requires_grad_()


def cotangent(of: torch.Tensor) -> torch.Tensor:
    """Random numbers, always the same, for a gradient of `of`: ones would hide that a softmax passes any gradient."""
    drawn = torch.randn(of.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return drawn.to(of.dtype).to(of.device)


def gradients(of: torch.Tensor, at: torch.Tensor, sent: torch.Tensor | None = None) -> torch.Tensor | None:
    """The gradient at a leaf when `of` gets the gradient `sent` (random numbers); None where it does not reach it."""
    if not of.requires_grad:
        return None
    of = of if strided(of) else of.to_dense()
    at.grad = None
    torch.autograd.backward([of], [cotangent(of) if sent is None else sent])  # the whole graph, as a user's backward
    return at.grad


def forget_gradient(leaf: torch.Tensor) -> None:
    leaf.grad = None


def allocated(action: Callable[[], object]) -> tuple[int, int]:
    """Bytes that `action` allocates: the most at one time, and what its result keeps."""
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
    """Autograd keeps copies of what it saves, so that the gradients are those of the values at that time."""
    with saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda tensor: tensor):
        yield


@contextlib.contextmanager
def without_copies() -> Iterator[None]:
    """Suspend `copies_saved` for a call that PyTorch refuses to run under saved tensor hooks, as `torch.func.grad`."""
    hooks: Any = torch._C._autograd._top_saved_tensors_default_hooks(True)
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
    """Memory that an operation leaves as it is holds the same numbers in every run."""
    with settings.kept():
        settings.fill_uninitialized()
        yield


def backward(roots: list[torch.Tensor]) -> None:
    """Backward from every root with ones, which takes roots of any shape and of complex numbers."""
    torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])


def compare_gradients(got: list[torch.Tensor | None], right: list[torch.Tensor | None]) -> Answer:
    """Fine, or silently wrong with the first pair that differs."""
    for mine, reference in zip(got, right, strict=True):
        if not _same(mine, reference):
            return Answer("silently wrong", f"silently wrong: gradient {numbers(mine)}, right is {numbers(reference)}")
    return Answer("fine", "fine")


def _same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and torch.allclose(one, other, equal_nan=True)


class Bench:
    """All that a probe is given: fresh inputs, the operand, and the tools of this module.

    What a probe does to its tensors is gone with them.
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
        """Run the operand on `subject`; random operations draw the same numbers each time.

        A setting of PyTorch that the operand changed is as before afterwards: what is measured is its result.
        """
        settings.seed(seed)
        before = settings.snapshot()
        try:
            returned = self._code(subject)
        finally:
            settings.restore(before)
        return Trial(subject, returned, first_tensor(returned))

    def settings_changed(self) -> list[str]:
        """The names of the settings of PyTorch that the operand leaves changed."""
        subject, before = self.subject(), settings.snapshot()
        try:
            self._code(subject)
            return [name for name in settings.changed(before) if name != settings.FILTERS]  # imports change them
        finally:
            settings.restore(before)

    def uninitialized(self) -> bool:
        """Whether the result holds what the memory happened to hold: PyTorch can be asked to fill that with NaN."""
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
        """The input of this bench with some properties changed."""
        return replace(self.spec, **changes)

    def trial(self, spec: Input | None = None) -> Trial:
        return self.apply(self.subject(spec))

    def warnings(self) -> list[str]:
        """`UserWarning: ...` for each warning that the call emits, those that PyTorch gives only once included."""
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
        """The input of this bench with about `size` elements."""
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
        """Take and give back memory as the calls will: the C library's allocator learns from what is given back."""
        for _ in range(3):
            self.subject(self.large)

    def timed(self, subject: Subject) -> int:
        """Nanoseconds of one call, on a device until the work is done."""
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
