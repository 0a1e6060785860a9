"""Compares the derivatives of a custom Function's `backward`, as autograd computes them, with its central differences.

`backward` is taken as a function of the inputs: for each moved input, `forward` runs again before it. A tensor that
`forward` computed and saved has no graph, so autograd takes it for a constant. In the differences it changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch

from tensorlens.tracer.reference.central_differences import DOUBLE, SHOWN, Application, Examination

_CLEAR = 0.2  # of the larger of two values: a difference that is no error of measurement
_SMALL = 1e-2  # of the largest value: smaller ones are not compared


@dataclass(frozen=True, slots=True)
class Use:
    """A call of a custom Function whose gradients were differentiated again: (gradient, input), by place."""

    application: Application
    pairs: dict[tuple[int, int], None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A derivative of a gradient that misses what changes with an input."""

    gradient: int  # places of arguments
    argument: int
    derivatives: tuple[float, ...]
    differences: tuple[float, ...]
    slots: tuple[int, ...]  # of the saved tensors
    attributes: tuple[str, ...]  # of `ctx`


def mismatch(use: Use) -> Mismatch | None:
    """Returns the first derivative that is wrong for sure, if the gradients themselves are right."""
    application = use.application
    application = replace(application, wanted=tuple(sorted({place for pair in use.pairs for place in pair})))
    try:
        outputs = application.run({}, torch.float64)
        if any(output.dtype is not torch.float64 for output in outputs):
            return None  # too coarse for these steps
        if not Examination(application, DOUBLE, outputs).is_right():
            return None
        found = (_Slopes(application, outputs, gradient).wrong_by(argument) for gradient, argument in use.pairs)
        return next((each for each in found if each is not None), None)
    except Exception:  # the program's own: it does not take such inputs, or its `backward` can't be differentiated
        return None


class _Slopes(Examination):
    """Examines a weighted sum of one gradient as a function of the inputs."""

    def __init__(self, application: Application, outputs: list[torch.Tensor], gradient: int) -> None:
        super().__init__(application, DOUBLE, outputs)
        self._gradient = gradient
        self._of_outputs = self._weights()
        self._of_gradient = [self._drawn(self.inputs[gradient])]
        self._before = float(self._sum({}, self._of_gradient)[0])

    def _drawn(self, like: torch.Tensor) -> torch.Tensor:
        return torch.rand(like.shape, generator=self.random, dtype=torch.float64) + 0.5

    def _sum(
        self, moved: dict[int, torch.Tensor], weights: list[torch.Tensor]
    ) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
        """Returns the weighted sum of the gradient, with its graph, and the inputs."""
        leaves = {n: moved.get(n, value).detach().clone().requires_grad_() for n, value in self.inputs.items()}
        outputs = self.application.run(leaves, torch.float64)
        # the gradient that `backward` gets has a graph, as in the program
        pairs = [(o, w.clone().requires_grad_()) for o, w in zip(outputs, self._of_outputs, strict=True)
                 if o.requires_grad]  # fmt: skip
        roots, given = zip(*pairs, strict=True)
        (found,) = torch.autograd.grad(roots, leaves[self._gradient], given, create_graph=True)
        if found.dtype is not torch.float64:
            raise TypeError  # too coarse
        return (found * weights[0]).sum(), leaves

    def change(self, moved: dict[int, torch.Tensor], weights: list[torch.Tensor]) -> float:
        """Returns how much the weighted sum of the gradient changes with moved inputs."""
        with torch.enable_grad():
            return float(self._sum(moved, weights)[0]) - self._before

    def wrong_by(self, place: int) -> Mismatch | None:
        """Returns the derivative by an input if most of its values are wrong, and a saved tensor is the reason."""
        total, leaves = self._sum({}, self._of_gradient)
        if float(total) != self._before:  # a backward that draws random numbers
            return None
        (slope,) = torch.autograd.grad(total, leaves[place], allow_unused=True)
        pairs = list(
            self.pairs(place, self._of_gradient, torch.zeros_like(leaves[place]) if slope is None else slope.detach())
        )
        size = max((abs(n) for _, n in pairs), default=0.0)
        changing = [(d, n) for d, n in pairs if size > 1e-6 and abs(n) > _SMALL * size]
        wrong = [(d, n) for d, n in changing if abs(d - n) > _CLEAR * max(abs(d), abs(n))]
        slots, attributes = self._constants(place)
        if not wrong or 2 * len(wrong) < len(changing) or not (slots or attributes):
            return None
        derivatives, differences = zip(*wrong[:SHOWN], strict=True)
        return Mismatch(self._gradient, place, derivatives, differences, slots, attributes)

    def _constants(self, place: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Returns which tensors that `forward` keeps have no graph, but change with an input."""
        value = self.inputs[place]
        before, after = (dict(self._kept({place: moved})) for moved in (value, value * 1.01 + 1e-2))
        changing = [
            key
            for key, one in before.items()
            if (other := after.get(key)) is not None and one.shape == other.shape and not torch.equal(one, other)
        ]
        return tuple(key for key in changing if isinstance(key, int)), tuple(k for k in changing if isinstance(k, str))

    def _kept(self, moved: dict[int, torch.Tensor]) -> Iterator[tuple[int | str, torch.Tensor]]:
        """Yields the tensors without a graph that a call saves, by slot, and those that it sets on `ctx`, by name."""
        leaves = {n: moved.get(n, value).detach().clone().requires_grad_() for n, value in self.inputs.items()}
        output = next(each for each in self.application.run(leaves, torch.float64) if each.requires_grad)
        node = output.grad_fn
        saved: tuple[object, ...] = getattr(node, "saved_tensors", ())
        for key, value in (*enumerate(saved), *getattr(node, "__dict__", {}).items()):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and not value.requires_grad:
                yield key, value
