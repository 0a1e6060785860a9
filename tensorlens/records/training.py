"""Defines the facts that only a run with `--training` records: about optimizers and parameters.

The tracer writes these facts several times, each time about the run so far: after the first training step, the second,
the fourth, and so on, and at the end. The last ones count, so a run that is killed has some, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.records.fields import NonNegative, SiteId, TensorId

MOST_NORMS = 32  # norms kept of one parameter, and learning rates of one group


@dataclass(frozen=True, slots=True)
class TrainingMeasured:
    """Ends the facts of a run with `--training` so far: those with the same `number`."""

    index: int
    number: NonNegative
    steps: NonNegative  # of all optimizers
    passes: NonNegative  # backward passes that ended without an error


@dataclass(frozen=True, slots=True)
class OptimizerGroup:
    """A parameter group of an optimizer, as the last step of the optimizer found it, or as it was made."""

    index: int
    number: NonNegative
    optimizer: NonNegative  # the optimizers are numbered in the order in which they are made
    group: NonNegative
    name: str  # "SGD"
    site: SiteId | None  # the line that made the group; None: it was made before the recording
    parameters: tuple[TensorId, ...]
    steps: NonNegative  # of the optimizer
    rates: tuple[float, float]  # the lowest and the highest learning rate at a step; NaN: it has none
    weight_decay: float
    momentum: float  # `momentum`, or the first of `betas`
    course: tuple[float, ...]  # the learning rates at its steps; if more than MOST_NORMS, means of several in a row
    turns: tuple[int, int]  # the first and the last step of the optimizer, among the steps of all optimizers, from 1
    is_shared: bool  # an earlier optimizer has the same group, as the optimizer has that a wrapper makes


@dataclass(frozen=True, slots=True)
class ParameterStatistics:
    """Describes what the gradients and the values of a parameter did.

    The gradients are those that the steps of its optimizers found. Of a leaf that no optimizer has stepped they are
    those that backward passes have left in `.grad`.
    """

    index: int
    number: NonNegative
    tensor: TensorId
    rounds: NonNegative  # steps of the optimizers that hold it, or else backward passes
    filled: NonNegative  # of these, the ones that found a gradient
    zero: NonNegative  # of the filled ones, those with a gradient of zeros alone
    nonfinite: NonNegative  # of the filled ones, those with an infinity or NaN in the gradient
    zeros: float  # the share of the gradients' elements that are exactly zero, over all filled rounds
    norms: tuple[float, ...]  # L2 norms of the gradients; if there are more than MOST_NORMS, means of several in a row
    first_nonfinite: NonNegative  # the first round with an infinity or NaN in the gradient, from 1; 0: none


@dataclass(frozen=True, slots=True)
class ParameterMovement:
    """Says how far a parameter has moved since the first round of `ParameterStatistics` that found it."""

    index: int
    number: NonNegative
    tensor: TensorId
    size: float  # L2 norm of its values then
    distance: float  # L2 norm of the difference
    elements: NonNegative
    unreached: NonNegative  # elements whose gradient was missing or exactly zero in each round
    unreached_moved: NonNegative  # of these, the ones with another value now


@dataclass(frozen=True, slots=True)
class ReducedLoss:
    """Says how the root of a backward pass was reduced: a mean or a sum of elements, times a constant."""

    index: int  # of the first event of the pass
    mean: bool
    elements: float
    factor: float


@dataclass(frozen=True, slots=True)
class SavedToFile:
    """A call of `torch.save`, with the tensors in what it writes."""

    index: int
    site: SiteId | None
    tensors: tuple[TensorId, ...]


@dataclass(frozen=True, slots=True)
class HeldMemory:
    """The memory of the live tensors that the program can reach, when an optimizer step begins.

    What only a graph has saved is not counted. Of tensors that share memory, one counts.
    """

    index: int
    step: NonNegative  # of all optimizers, from 1
    live: NonNegative  # blocks of memory
    size: NonNegative  # bytes of all of them
    tensors: tuple[TensorId, ...]  # one for each of the last blocks, in the order in which they were met
    sizes: tuple[int, ...]  # bytes of each
    older: NonNegative  # so many of `tensors`, the first ones, are older than the step before
    graphs: tuple[TensorId, ...]  # those of `tensors` that have a graph


@dataclass(frozen=True, slots=True)
class ZeroedGradient:
    """A node that received a gradient with values other than zero, and passed only zeros on towards a leaf."""

    index: int
    tensor: TensorId  # the leaf
    node: str  # "SoftmaxBackward0"
    sequence: int  # of the node


@dataclass(frozen=True, slots=True)
class NonfiniteSeen:
    """Names the first loss of a run with an infinity or NaN, or the first such gradient that a step uses.

    A gradient of a leaf that no optimizer holds counts after each backward pass.
    """

    index: int
    kind: str  # "loss", "gradient"
    value: str  # "nan", "inf", "-inf"
    tensor: TensorId | None  # the parameter
    passes: NonNegative  # backward passes that had begun
    steps: NonNegative  # optimizer steps before
    losses: tuple[float, ...]  # the last finite ones before, each the sum of a root's elements


@dataclass(frozen=True, slots=True)
class FirstNonfinite:
    """The operation behind `NonfiniteSeen`: the first to make an infinity or NaN that leads there, in a second run.

    `kind` is "forward" (from finite inputs, or NaN from infinities), "backward" (a node, from a finite gradient),
    "constant" (the script gives the value), "data" (it is there when the tensor is made), "unknown" (it is there when a
    call first reads it), "sum" (gradients that are added, or changed by a hook), or "" (`reason` says why none is
    known).
    """

    index: int
    kind: str
    reason: str = ""
    searched: bool = True  # a second run was made
    op: str = ""  # "torch.log"; of a node the call that made it, or the node's name
    within: str = ""  # "Adam.step": the optimizer step that was running
    node: str = ""  # "LogBackward0"
    site: SiteId | None = None
    value: str = ""  # "nan", "inf", "-inf"
    shape: tuple[int, ...] = ()  # of what the operation made
    count: NonNegative = 0  # elements of it that are not finite
    position: tuple[int, ...] = ()  # of one such element
    scope: str = ""  # what `operands` are: "element": the inputs' values there; "slice": all of a dimension; "range"
    dimension: NonNegative = 0  # of the slice
    names: tuple[str, ...] = ()  # of a node's operands: "gradient", "result"
    operands: tuple[str, ...] = ()
    then_op: str = ""  # the call that makes the first NaN of an infinity, and its line
    then_site: SiteId | None = None
    given_site: SiteId | None = None  # the line that gives the infinities of which it makes NaN
    seen_site: SiteId | None = None  # the backward pass that found the loss or the gradient
    passes: NonNegative = 0  # backward passes that had begun before
    steps: NonNegative = 0  # optimizer steps before
    mixed: bool = False  # another operation has made such values in the same tensors: this one is the earliest
