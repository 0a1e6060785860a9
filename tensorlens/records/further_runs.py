"""Records facts that only further runs of a program find: those of `--reference` and `--try`."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.records.fields import NonNegative, SiteId, TensorId


@dataclass(frozen=True, slots=True)
class WrongBackward:
    """A custom Function whose `backward` is not the derivative of its `forward`. Only `--reference` finds it."""

    index: int
    function: str  # name of the class
    argument: str  # a parameter of `forward`
    backward: tuple[float, ...]  # some values of its gradient, for a weighted sum of the outputs
    differences: tuple[float, ...]  # the central differences of the same elements
    weights: (
        str  # of the outputs in that sum: "ones", "random", "given" (what `backward` got), or "part 3" (of one output)
    )
    others: tuple[str, ...] = ()  # the parameters whose gradient is wrong too, also if the program does not need it


@dataclass(frozen=True, slots=True)
class ConstantInBackward:
    """A custom Function whose `backward` uses what `forward` computed as a constant, and is differentiated again.

    Only the second run of `--training` finds it.
    """

    index: int
    function: str  # name of the class
    gradient: str  # the parameter of `forward` whose gradient the program differentiates again
    argument: str  # the parameter of `forward` by which it does
    derivatives: tuple[float, ...]  # some values of this derivative, as autograd computes them
    differences: tuple[float, ...]  # the central differences of `backward` for the same elements
    slots: tuple[NonNegative, ...]  # of `ctx.saved_tensors`: tensors without a graph that change with the argument
    attributes: tuple[str, ...]  # of `ctx`, with such tensors


@dataclass(frozen=True, slots=True)
class Intervened:
    """An intervention of a further run, when it is made for the first time."""

    index: int
    number: NonNegative  # its position in `ComparedRun.interventions`


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """A line that wrote memory outside torch, in a run that compares that memory line by line."""

    index: int  # of the event that follows, as that of the `Overwrite` is
    tensor: TensorId | None  # that of the `Overwrite`
    site: SiteId
