"""Compares the gradients that the `backward` of a custom Function gives with central differences of its `forward`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from tensorlens.tracer.recording.recorder import collect_tensors

Wrong = tuple[int, tuple[float, ...], tuple[float, ...], str]  # place, gradients, differences, weights
PLACES = 16  # values of an input that are moved, at most
SECONDS = 2.0  # of this thread's processor time, for each call that is checked
SHOWN = 6  # values in a row
_CERTAIN = 1e-2  # of the largest output: a smaller difference may be one of rounding


@dataclass(frozen=True, slots=True)
class _Precision:
    dtype: torch.dtype | None  # None: the program's own
    step: float  # relative
    close: float


DOUBLE = _Precision(torch.float64, 1e-5, 0.02)
_SINGLE = _Precision(None, 4e-3, 0.1)


@dataclass(frozen=True, slots=True)
class Application:
    """A call of a custom Function: copies of its arguments, and the places of those that required grad."""

    kind: type[torch.autograd.Function]
    args: tuple[object, ...]
    wanted: tuple[int, ...]
    runs_code: bool = False  # it gets a module or a function, and the parameters themselves
    given: list[torch.Tensor] = field(default_factory=list)  # the first gradient of its only output

    def take(self, gradients: tuple[object, ...]) -> None:
        """Keeps the gradient that `backward` is about to get."""
        if not self.given and len(gradients) == 1 and isinstance(gradients[0], torch.Tensor):
            self.given.append(gradients[0].detach().clone())

    def run(self, moved: dict[int, torch.Tensor], dtype: torch.dtype | None) -> list[torch.Tensor]:
        """Calls `apply` with the kept arguments, except those in `moved`. Returns the floating-point outputs."""
        given = [moved.get(place, value) for place, value in enumerate(self.args)]
        fresh = [self._fresh(value, dtype) if isinstance(value, torch.Tensor) else value for value in given]
        found: list[torch.Tensor] = []
        collect_tensors(self.kind.apply(*fresh), found)
        return [output for output in found if output.is_floating_point()]

    def _fresh(self, value: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
        return value if self.runs_code and is_parameter(value) else _in_dtype(value, dtype).clone()


def is_parameter(value: object) -> bool:
    return isinstance(value, torch.nn.Parameter)


def _in_dtype(value: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    return value if dtype is None or not value.is_floating_point() else value.to(dtype)


def examined(application: Application) -> Wrong | None:
    """Compares one call in double precision, or in the program's own if it does not run in double."""
    for precision in (_SINGLE,) if application.runs_code else (DOUBLE, _SINGLE):
        try:
            before = application.run({}, precision.dtype)
            if precision.dtype is None or all(output.dtype is precision.dtype for output in before):
                return Examination(application, precision, before).result()
        except Exception:  # the program's own: it does not take such inputs, or cannot be run again
            if precision is _SINGLE:
                return None
    return None


def all_wrong(application: Application) -> list[int]:
    """Returns the places of all arguments whose gradient is wrong, also of those that the program needs none of."""
    if application.runs_code:
        return []
    wanted = tuple(
        n for n, value in enumerate(application.args) if isinstance(value, torch.Tensor) and value.is_floating_point()
    )
    try:
        outputs = application.run({}, torch.float64)
        if any(output.dtype is not torch.float64 for output in outputs):
            return []  # too coarse for these steps
        return Examination(replace(application, wanted=wanted), DOUBLE, outputs).wrong_places()
    except Exception:  # the program's own: it does not take such inputs
        return []


class Examination:
    """Compares the gradients of one application with central differences."""

    def __init__(self, application: Application, precision: _Precision, outputs: list[torch.Tensor]) -> None:
        self.application, self._precision, self.outputs = application, precision, outputs
        self.inputs = {
            n: _in_dtype(value, precision.dtype)
            for n in application.wanted
            if isinstance(value := application.args[n], torch.Tensor)
        }
        self.random = torch.Generator().manual_seed(0)
        self._ends = time.thread_time() + SECONDS

    def result(self) -> Wrong | None:
        """Returns (place, gradients, differences, weights) of the first input whose gradient is wrong."""
        if not self._is_deterministic() or self._returns_an_input():
            return None
        if self.application.runs_code:
            return self._ignored_part()
        weights = self._weights()
        gradients = self._gradients(weights)
        scaled = self._gradients(weights, -8.0)
        linear = [n for n, gradient in gradients.items() if _is_multiple(scaled[n], gradient, -8.0)]
        rest = {n: gradient for n, gradient in gradients.items() if n not in linear}
        if not all(_is_multiple(scaled[n], gradient, 1.0) for n, gradient in rest.items()):
            return None
        found = [(n, list(self.pairs(n, weights, gradients[n]))) for n in linear]
        if any(_is_deliberate(pairs) for _, pairs in found):
            return None
        for place, pairs in found:
            if wrong := self._wrong(pairs):
                ones = [(weight != 0).to(weight) for weight in weights]
                plain = self._wrong(self.pairs(place, ones, self._gradients(ones)[place]))
                return _row(place, plain, "ones") if plain else _row(place, wrong, "random")
        return self._wrong_for_given(rest)

    def is_right(self) -> bool:
        """Returns whether the gradients are measured to be the derivatives, and no input is left out of this."""
        if not self._is_deterministic() or self._returns_an_input():
            return False
        weights = self._weights()
        gradients, scaled = self._gradients(weights), self._gradients(weights, -8.0)
        if gradients.keys() != self.inputs.keys():
            return False
        found = [list(self.pairs(n, weights, gradient)) for n, gradient in gradients.items()]
        is_linear = all(_is_multiple(scaled[n], gradient, -8.0) for n, gradient in gradients.items())
        return is_linear and all(pairs and not _is_deliberate(pairs) and not self._wrong(pairs) for pairs in found)

    def wrong_places(self) -> list[int]:
        """Returns the inputs whose gradient is wrong for outputs that each have another weight."""
        weights = self._weights()
        found = {n: list(self.pairs(n, weights, each)) for n, each in self._gradients(weights).items()}
        return [n for n, pairs in found.items() if not _is_deliberate(pairs) and self._wrong(pairs)]

    def _ignored_part(self) -> Wrong | None:
        """Returns an input that a part of the output changes with, while `backward` ignores the gradient of this part.

        Only such a gradient is an error for sure: solvers may have a derivative that is close to that of their steps.
        """
        given, outputs = self.application.given, self.outputs
        if len(outputs) != 1 or not given or given[0].shape != outputs[0].shape or outputs[0].dim() < 2:
            return None
        ones = [torch.ones(outputs[0].shape, dtype=torch.float64)]
        whole, again = (self._gradients(ones) for _ in range(2))  # a backward may draw parts by chance
        if whole.keys() != again.keys() or not all(torch.equal(whole[n], again[n]) for n in whole):
            return None
        used = [k for k, part in enumerate(given[0]) if part.count_nonzero()]
        for part in dict.fromkeys((*used[:1], *used[len(used) // 2 :][:1], *used[-1:])):
            if time.thread_time() > self._ends:  # each part runs the solver again
                return None
            weights = torch.zeros(outputs[0].shape, dtype=torch.float64)
            weights[part] = 1.0
            for place, gradient in self._gradients([weights]).items():
                if not gradient.count_nonzero() and whole[place].count_nonzero():  # else it is off on purpose
                    pairs = self.pairs(place, [weights], gradient)
                    changes = [(b, n) for b, n in pairs if abs(n) > _CERTAIN * float(outputs[0].abs().max())]
                    if changes:
                        return _row(place, changes, f"part {part}")
        return None

    def _wrong_for_given(self, gradients: dict[int, torch.Tensor]) -> Wrong | None:
        """Checks gradients that ignore the one that `backward` receives: they may be right for the program's."""
        given = [gradient.to(torch.float64) for gradient in self.application.given]
        if [g.shape for g in given] != [o.shape for o in self.outputs]:
            return None
        found = {n: self._wrong(self.pairs(n, given, gradients[n])) for n in gradients}
        return next((_row(n, wrong, "given") for n, wrong in found.items() if wrong), None)

    def _is_deterministic(self) -> bool:
        again = self.application.run({}, self._precision.dtype)
        return len(again) == len(self.outputs) and all(map(torch.equal, again, self.outputs))

    def _returns_an_input(self) -> bool:
        """Returns whether an output equals an input: such a Function exists for its backward."""
        given = [_in_dtype(v, self._precision.dtype) for v in self.application.args if isinstance(v, torch.Tensor)]
        return any(o.shape == v.shape and torch.equal(o, v) for o in self.outputs for v in given)

    def _weights(self) -> list[torch.Tensor]:
        """Returns random weights of the outputs; 0 for those that the Function marks as not differentiable."""
        outputs = self.application.run(
            {n: v.clone().requires_grad_() for n, v in self.inputs.items()}, self._precision.dtype
        )
        drawn = [torch.rand(o.shape, generator=self.random, dtype=torch.float64) + 0.5 for o in outputs]
        return [weight * output.requires_grad for weight, output in zip(drawn, outputs, strict=True)]

    def _gradients(self, weights: list[torch.Tensor], factor: float = 1.0) -> dict[int, torch.Tensor]:
        """Returns the gradient of each input that has one, for a weighted sum of the outputs."""
        leaves = {n: v if self._is_itself(v) else v.clone().requires_grad_() for n, v in self.inputs.items()}
        outputs = self.application.run(leaves, self._precision.dtype)
        pairs = [(o, (factor * w).to(o)) for o, w in zip(outputs, weights, strict=True) if o.requires_grad]
        roots, given = zip(*pairs, strict=True)
        found = torch.autograd.grad(roots, tuple(leaves.values()), given, allow_unused=True)
        return {n: g.detach().to(torch.float64) for n, g in zip(leaves, found, strict=True) if g is not None}

    def pairs(self, place: int, weights: list[torch.Tensor], gradient: torch.Tensor) -> Iterator[tuple[float, float]]:
        """Returns (gradient, difference) at some places of an input where the forward is smooth."""
        flat = gradient.reshape(-1)
        by_chance = torch.randperm(flat.numel(), generator=self.random)[: PLACES // 2].tolist()
        largest = flat.abs().topk(min(PLACES // 2, flat.numel())).indices.tolist()
        for position in sorted({*by_chance, *largest}):
            positions = [position, *_mirrored(self.inputs[place], position)]
            difference = None if time.thread_time() > self._ends else self._difference(place, positions, weights)
            if difference is not None:
                yield float(flat[positions].sum()), difference

    def _difference(self, place: int, positions: list[int], weights: list[torch.Tensor]) -> float | None:
        """Returns the derivative of the weighted sum by one value, if steps of two sizes in both directions agree."""
        found: list[float] = []
        step = self._precision.step * max(1.0, abs(float(self.inputs[place].reshape(-1)[positions[0]])))
        for size in (step, -step, 4 * step, -4 * step):
            with torch.no_grad(), self._moved(place, positions, size) as moved:
                found.append(self.change(moved, weights) / size)
        largest = max(map(abs, found))
        if max(found) - min(found) > 2 * self._precision.close * largest + 1e-7:
            return None
        return (found[0] + found[1]) / 2

    def change(self, moved: dict[int, torch.Tensor], weights: list[torch.Tensor]) -> float:
        """Returns how much a weighted sum of the outputs changes with moved inputs."""
        outputs = self.application.run(moved, self._precision.dtype)
        pairs = zip(outputs, self.outputs, weights, strict=True)
        return sum(float(((a.to(w) - b.to(w)) * w).sum()) for a, b, w in pairs)

    def _is_itself(self, value: torch.Tensor) -> bool:
        return self.application.runs_code and is_parameter(value)

    @contextmanager
    def _moved(self, place: int, positions: list[int], size: float) -> Iterator[dict[int, torch.Tensor]]:
        """Yields an input with some values changed. A parameter that the Function's code reads is changed itself."""
        value = self.inputs[place]
        moved = value.detach().clone(memory_format=torch.contiguous_format)
        moved.view(-1)[positions] += size
        if not self._is_itself(value):
            yield {place: moved}
            return
        before = value.detach().clone()
        try:
            value.copy_(moved)
            yield {}
        finally:
            value.copy_(before)

    def _wrong(self, pairs: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        """Returns the pairs in which gradient and difference disagree, among those where the forward changes."""
        found = list(pairs)
        size = max((max(abs(b), abs(n)) for b, n in found), default=0.0)
        close, least = 2 * self._precision.close, 1e-3 * size + 1e-7
        return [(b, n) for b, n in found if abs(n) > least and abs(b - n) > max(close * max(abs(b), abs(n)), least)]


def _row(place: int, wrong: list[tuple[float, float]], weights: str) -> Wrong:
    shown = wrong[:SHOWN]
    return place, tuple(b for b, _ in shown), tuple(n for _, n in shown), weights


def _is_multiple(scaled: torch.Tensor, gradient: torch.Tensor, factor: float) -> bool:
    """Returns whether a `scaled` gradient is `factor` times another, as that of a linear backward is.

    A backward that clips gradients, or keeps only one sign, is not linear: it is no derivative on purpose.
    """
    return torch.allclose(scaled, factor * gradient, rtol=1e-3, atol=1e-6)


def _mirrored(value: torch.Tensor, position: int) -> list[int]:
    """Returns the mirrored place of a symmetric matrix, which must stay symmetric: decompositions read one half."""
    width = value.shape[-1] if value.dim() >= 2 and value.shape[-1] == value.shape[-2] else 0
    if width < 2 or not torch.allclose(value, value.mT):
        return []
    matrix, row, column = position // (width * width), position // width % width, position % width
    return [] if row == column else [matrix * width * width + column * width + row]


def _is_deliberate(pairs: list[tuple[float, float]]) -> bool:
    """Returns whether only the gradients, or only the differences, are all zero: the backward is so on purpose."""
    backward, difference = (any(abs(pair[n]) > 1e-9 for pair in pairs) for n in (0, 1))
    return bool(pairs) and backward != difference
