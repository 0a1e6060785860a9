"""Defines the facts about values that only a run with `--training` records: equal ones, and those that nothing uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensorlens.records.fields import NonNegative, SiteId, TensorId


@dataclass(frozen=True, slots=True)
class UnreadOption:
    """An option of an optimizer that the script has written to where no step reads it, while its groups keep theirs."""

    index: int
    number: NonNegative
    optimizer: NonNegative  # as in `OptimizerGroup`
    place: str  # "defaults", or "attribute" of the optimizer
    name: str  # "lr"
    value: float  # as it was last seen there
    used: float  # that of the groups


@dataclass(frozen=True, slots=True)
class InitialStatistics:
    """A batch norm that last ran in eval mode with running statistics as they are made: means of 0, variances of 1.

    Its own weight or bias has other values than those that it is made with.
    """

    index: int
    number: NonNegative
    layer: str  # "BatchNorm2d"
    site: SiteId | None  # the line that ran it
    switched: SiteId | None  # the line that switched it to eval mode
    parameters: tuple[TensorId, ...]  # its own


@dataclass(frozen=True, slots=True)
class TrainingModeKept:
    """A layer such as dropout that ran in training mode while gradients were off, after steps had trained it, or after
    steps that have trained other layers only.

    No line has called `eval()` of a module around it, or one has switched it back from eval mode before.
    """

    index: int
    number: NonNegative
    layer: str  # "Dropout"
    site: SiteId | None  # the line that ran it last
    runs: NonNegative
    steps: NonNegative  # for which it ran in training mode with gradients on
    switched: SiteId | None = None  # the line that has switched it back
    evaluated: SiteId | None = None  # the line that had switched another module to eval mode before the last run


@dataclass(frozen=True, slots=True)
class EqualParameters:
    """Parameters that equal each other in every bit, after steps with gradients have moved each."""

    index: int
    number: NonNegative
    tensors: tuple[TensorId, ...]
    rounds: NonNegative  # in which each had such a gradient


@dataclass(frozen=True, slots=True)
class LoadedAverages:
    """A call of `load_state_dict()` of an optimizer, with the parameters of which it has loaded tensors."""

    index: int
    site: SiteId | None
    name: str  # "AdamW"
    parameters: tuple[TensorId, ...]


@dataclass(frozen=True, slots=True)
class ReorderedAverages:
    """A step after a load, with values at other places than in the state dict, and averages at the places there."""

    index: int
    site: SiteId | None  # the line that has loaded the averages
    optimizers: tuple[int, int]  # the one that steps, and the one that has made the dict, as in `OptimizerGroup`
    counts: tuple[int, int]  # of parameters with the averages of another one, and of all parameters


@dataclass(frozen=True, slots=True)
class LoadedRate:
    """A learning rate that `load_state_dict()` of a new optimizer has replaced."""

    index: int
    number: NonNegative
    optimizer: NonNegative  # as in `OptimizerGroup`
    site: SiteId | None
    made: float  # the rate that the optimizer was made with
    loaded: float
    is_scheduled: bool = False  # a scheduler has made the loaded rate of the one that the optimizer was made with


@dataclass(frozen=True, slots=True)
class SharedState:
    """State of an optimizer that shares memory with what it should be a copy of.

    "gradient": with the gradient of its parameter, which the next pass changes. "loaded": a state dict that was loaded
    holds the tensors that the optimizer has anyhow, and that steps have changed since it was made.
    """

    index: int
    number: NonNegative
    optimizer: NonNegative  # as in `OptimizerGroup`
    kind: Literal["gradient", "loaded"]
    name: str  # "momentum_buffer"
    site: SiteId | None  # the line that loads; None for a gradient
    tensors: tuple[TensorId, ...]  # the parameters whose state it is


@dataclass(frozen=True, slots=True)
class FunctionsChecked:
    """A second run has compared the `backward` of each custom Function of the program with its `forward`."""

    index: int


@dataclass(frozen=True, slots=True)
class EqualRows:
    """A parameter whose rows equal each other in every bit, after steps with gradients have moved it."""

    index: int
    number: NonNegative
    tensor: TensorId
    rows: NonNegative
    rounds: NonNegative  # in which it had such a gradient


@dataclass(frozen=True, slots=True)
class SeedSet:
    """A call of `torch.manual_seed()`, or of `set_rng_state()`, which also ends a `fork_rng()`. Of very many calls only
    the first."""

    index: int
    site: SiteId | None
    seed: int | None  # None: the state of the generator was set
    state: NonNegative | None = None  # a checksum of that state


@dataclass(frozen=True, slots=True)
class RepeatedIndices:
    """An assignment to items of a tensor, as `x[index] = values`, whose index names some places more than once."""

    index: int  # of the assignment
    places: NonNegative  # that the index names, each as often as it does
    repeated: NonNegative  # of these, the ones that it has named before
    different: NonNegative  # places that it names more than once


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """The keys of a sort of one row. The others of the neighbours are equal, or NaN."""

    index: int  # of the call
    along: NonNegative  # neighbours that are in the order of the sort
    against: NonNegative  # neighbours that are in the other order


@dataclass(frozen=True, slots=True)
class OrderTwice:
    """An order that a sort or `randperm()` has made, and how many places have another entry if it is taken twice."""

    index: int  # of the event after the call
    tensor: TensorId
    axis: NonNegative  # along which it holds the places 0, 1, ...
    moved: NonNegative


@dataclass(frozen=True, slots=True)
class ZeroedSequences:
    """A CTC loss with `zero_infinity=True` in a backward pass."""

    index: int  # of the first event of the pass
    sequences: NonNegative
    infinite: NonNegative  # of these, the ones whose loss is infinite: they give 0, and no gradient
    short: NonNegative  # of all, the ones whose output has fewer steps than there are labels


@dataclass(frozen=True, slots=True)
class BlankLabels:
    """The labels of a CTC loss in a backward pass, within the lengths of their sequences, of which some are the blank.

    It is written for the first few passes with such labels.
    """

    index: int  # of the first event of the pass
    blank: NonNegative  # the id
    labels: NonNegative
    blanks: NonNegative  # of these


@dataclass(frozen=True, slots=True)
class WeightedTargets:
    """The targets of a loss with weights by class, in the passes since the first one with these weights."""

    index: int  # of the first event of the last of these passes
    is_binary: bool  # the only weight is that of the ones
    weights: tuple[float, ...]
    counts: tuple[int, ...]  # of the targets of each class; of the zeros and ones


@dataclass(frozen=True, slots=True)
class PaddedIds:
    """The ids that an embedding with a `padding_idx` has looked up while gradients were on, in rows.

    The rows of a look-up may be columns of the tensor: where these show padding before or after other ids.
    """

    index: int
    number: NonNegative
    tensor: TensorId  # its weight
    site: SiteId | None  # the line that looked up last
    padding: int
    rows: NonNegative
    inner: NonNegative  # of these, the ones with the padding between other ids
    places: NonNegative  # from the first to the last other id of each row
    padded: NonNegative  # of these, the ones with the padding
    outer: NonNegative = 0  # places before the first and after the last other id of each row
    runs: NonNegative = 0  # how often the padding begins between other ids
    columns: NonNegative = 0  # at so many different columns; or it ends at so many, if these are fewer
    width: NonNegative = 0  # of the longest row


@dataclass(frozen=True, slots=True)
class PlateauMetric:
    """The values that a `ReduceLROnPlateau` was given at its steps."""

    index: int
    number: NonNegative
    schedule: NonNegative  # as in `LearningRateSchedule`
    mode: str  # "min", "max": it cuts the rate when the metric does not fall, or rise, any more
    first: float
    last: float
    steps: NonNegative
    lows: NonNegative  # steps with a value below all before
    highs: NonNegative  # steps with a value above all before
    cuts: NonNegative  # steps after which the learning rate was lower than after the one before


@dataclass(frozen=True, slots=True)
class RateSetBetween:
    """A learning rate of a group that was set between two steps of a scheduler, for the first time."""

    index: int
    number: NonNegative
    schedule: NonNegative  # as in `LearningRateSchedule`
    group: NonNegative  # of its optimizer
    times: NonNegative  # that one was set between two steps
    steps: NonNegative  # of the scheduler before
    used: NonNegative  # steps of the optimizer between the two
    earlier: NonNegative  # steps of the optimizer from when the scheduler was made to the first of the two
    before: float  # the rate after the scheduler's step before
    rate: float  # that it was set to
    after: float  # the one after the scheduler's next step


@dataclass(frozen=True, slots=True)
class ShallowCopy:
    """A module that `copy.copy()` made of another one, with the same parameters."""

    index: int
    site: SiteId
    module: str  # its type
    parameters: tuple[TensorId, ...]


@dataclass(frozen=True, slots=True)
class BatchMomentum:
    """The `momentum` that batch norm was given each time it updated the same running statistics, and their use."""

    index: int
    number: NonNegative
    mean: TensorId
    site: SiteId | None  # the line that updated them first
    momentum: float
    updates: NonNegative  # while gradients were on
    uses: NonNegative  # in eval mode, after an update
    is_constant: bool  # it was the same each time


@dataclass(frozen=True, slots=True)
class DroppedByFunction:
    """A line that calls functional dropout itself, and not a layer that does, each time in training mode."""

    index: int
    number: NonNegative
    site: SiteId
    runs: NonNegative


@dataclass(frozen=True, slots=True)
class LoadedProducts:
    """The inner products of a tensor that a module loads with others of its shape, and of these with each other.

    Of large tensors the first elements count. It follows whether the tensor is a sum of others, and with which factors.
    """

    index: int  # of the event after the root of the module was loaded
    site: SiteId | None
    target: TensorId  # the parameter that it is loaded to
    tensors: tuple[TensorId, ...]  # the loaded one first
    products: tuple[float, ...]  # of each tensor with itself and those after it
