"""Defines the facts that only a run with `--training` records: about optimizers and parameters.

The tracer writes these facts several times, each time about the run so far: after the first training step, the second,
the fourth, and so on, and at the end. The last ones count, so a run that is killed has some, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Annotated

from tensorlens.records.fields import LongAs, NonNegative, RegistrationId, SiteId, TensorId

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
    found: tuple[NonNegative, ...] = ()  # of each parameter: the steps that found a gradient
    made_rate: float = nan  # the learning rate that the group was made with; NaN: it has none
    grown: tuple[int, float, float, float] = (0, nan, nan, nan)
    """So many first steps raise the rate by one factor each: the first, the last, the highest later; NaN: none."""


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
    half_steps: NonNegative = 0  # rounds in half precision
    kept: NonNegative = 0  # elements that had a gradient and, whenever looked at, their first value in half precision
    unreached_rows: tuple[NonNegative, ...] = ()  # the first rows of a matrix without a gradient, if others had some


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
    last: tuple[int, int, int] = (-1, 0, 0)
    """(optimizer, unreached, unreached_moved) for the steps of its last optimizer, if others stepped it before; -1:
    none did. The last number counts only elements that had a gradient under those others."""


@dataclass(frozen=True, slots=True)
class GradientOfZeros:
    """A step that finds a gradient of zeros alone: the first of a parameter, the second, the fourth and the eighth."""

    index: int  # that of the step
    tensor: TensorId


@dataclass(frozen=True, slots=True)
class StepsOnZeros:
    """Counts the steps of an optimizer that found a gradient of zeros alone, and moved the parameter all the same."""

    index: int
    number: NonNegative
    optimizer: NonNegative  # as in `OptimizerGroup`
    tensor: TensorId
    steps: NonNegative  # that found such a gradient
    moved: NonNegative  # of these, the ones that moved it
    decayed: NonNegative  # of these, the ones with weight decay
    carried: NonNegative  # of those that moved it, the ones with an average of earlier gradients that is not zero
    distance: float  # the L2 norms of these movements together


@dataclass(frozen=True, slots=True)
class HookCount:
    """Says how many hooks a line has on one tensor or module, after the 1st, 2nd, 4th pass and so on.

    There is none before a look that finds two or more.
    """

    index: int
    passes: NonNegative  # backward passes that had ended
    registration: RegistrationId
    count: NonNegative


@dataclass(frozen=True, slots=True)
class LearningRateSchedule:
    """A learning-rate scheduler, as it was last seen."""

    index: int
    number: NonNegative
    schedule: NonNegative  # the schedulers are numbered in the order in which they are made
    name: str  # "StepLR"
    site: SiteId | None  # the line that made it
    optimizer: NonNegative | None  # as in `OptimizerGroup`
    is_known: bool  # whether its class has the `step()` of PyTorch, so that all its steps are counted
    is_held: bool  # another scheduler steps it
    steps: NonNegative
    last: SiteId | None  # the line of its last step
    idle: NonNegative  # its last steps before which another optimizer stepped, and its own had not stepped any more
    before: NonNegative  # steps of its optimizer before it was made
    made_for: NonNegative = 0  # so many of its steps; 0: not known
    option: str = ""  # that says so: "T_max"
    function: SiteId | None = None  # of a `LambdaLR`: the function that reads the number, by this name


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
class LoadedState:
    """A call of `load_state_dict(strict=False)` of a module, or of `functional_call()`: how many tensors it has
    loaded, or used in place of the module's own."""

    index: int
    number: NonNegative
    site: SiteId | None
    module: str  # its type
    names: NonNegative  # of the module's own tensors
    given: NonNegative  # names in the dict
    loaded: NonNegative
    is_call: bool = False  # of `functional_call()`
    renamed: NonNegative = 0  # tensors that it has not loaded, and that the dict has with another prefix in their name
    example: tuple[str, str] = ("", "")  # the names of one of these: of the module, and in the dict


@dataclass(frozen=True, slots=True)
class HeldMemory:
    """The memory of a run when an optimizer step or a backward pass begins.

    Of tensors that share memory, one counts. Memory that a graph has saved is live if a Python object has it, too.
    """

    index: int
    step: NonNegative  # of all optimizers, from 1; before a backward pass, the next one
    begun: NonNegative  # the backward pass that begins, from 1; 0: a step begins
    live: NonNegative  # blocks of memory of live tensors
    size: NonNegative  # bytes of all of them
    tensors: tuple[TensorId, ...]  # one for each of the last blocks, in the order in which they were met
    sizes: Annotated[tuple[int, ...], LongAs("tensors")]  # bytes of each
    older: NonNegative  # so many of `tensors`, the first ones, are older than the step before
    graphs: tuple[TensorId, ...]  # those of `tensors` that have a graph
    unheld: tuple[TensorId, ...]  # those of `tensors` that no Python object has: they are in `saved`, not in `live`
    saved: NonNegative  # bytes that only graphs hold
    nodes: tuple[int, ...]  # sequence numbers of the first nodes that have saved them: those with the most
    saved_sizes: Annotated[tuple[int, ...], LongAs("nodes")]  # bytes of each
    is_complete: bool  # no graph was too large to be read


@dataclass(frozen=True, slots=True)
class EvaluatingSteps:
    """Steps for which a layer such as dropout ran in eval mode only, after steps for which it ran in training mode.

    A line switched the layer with a module around it, and evaluated it. The steps are those of an optimizer that found
    gradients of that module.
    """

    index: int
    number: NonNegative
    optimizer: NonNegative
    layer: str  # "Dropout"
    module: str  # the type of the module that was switched
    site: SiteId | None  # the line that switched it
    trained: NonNegative  # steps for which it ran in training mode
    steps: NonNegative  # those for which it ran in eval mode only
    first: NonNegative  # of the latter, among the steps of all optimizers, from 1
    is_reader: bool = False  # a module of the script whose `forward` reads `self.training`: its mode at the steps


@dataclass(frozen=True, slots=True)
class FrozenStatistics:
    """Running statistics that forward passes have updated up to the end, while no parameter up to there is trained."""

    index: int
    number: NonNegative
    layer: str  # "BatchNorm2d"
    site: SiteId | None  # the line that ran the layer
    switched: SiteId | None  # the line that switched the layer to training mode; None: it was made like that
    parameters: tuple[TensorId, ...]  # of the layer; they do not require grad
    steps: NonNegative  # for which the statistics were updated
    trains_part: bool = False  # one of these steps trains a parameter of the module that `switched` switched


@dataclass(frozen=True, slots=True)
class ZeroedGradient:
    """A node that received a gradient with values other than zero, and passed only zeros on towards a leaf."""

    index: int
    tensor: TensorId  # the leaf
    node: str  # "SoftmaxBackward0"
    sequence: int  # of the node


@dataclass(frozen=True, slots=True)
class TermGradient:
    """The L2 norms of the gradients that one term of a loss alone gives to parameters, in a second run."""

    index: int
    root: NonNegative  # the sequence number of the node of the pass's root
    node: NonNegative  # that of the first node of the term
    tensors: tuple[TensorId, ...]
    norms: Annotated[tuple[float, ...], LongAs("tensors")]


@dataclass(frozen=True, slots=True)
class TermsUnknown:
    """Says why the gradients of the terms of a run's losses are not known."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class NonfiniteSeen:
    """Names the first loss of a run with an infinity or NaN, or the first such gradient that a step uses.

    A gradient of a leaf that no optimizer holds counts after each backward pass. That of a parameter which no step
    changes in the whole run counts if each of its gradients has an infinity or NaN.
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
