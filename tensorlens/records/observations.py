"""Records facts beside the events: memory that changed behind a version counter, an optimizer's steps, live graphs.

A new kind of fact is a dataclass here and a field of `Observations` that holds it. The tracer writes one with
`recorder.rows.write_fact(Uncalled, site, tensor)`: the class, and its fields without `index`. The reader sets `index`:
the fact happened before the event with this index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_args, get_type_hints

from tensorlens.records import graph_values, kept_tensors, training, training_arrays, training_samples, training_values
from tensorlens.records.distributed import (
    BroadcastBuffer,
    Collective,
    CollectiveReturned,
    EndedAt,
    ForwardInputs,
    HooksFired,
    ReplicaState,
    Sharded,
    ShardedHookRan,
    ShardedOutput,
    Wrapped,
    WrapperOption,
)
from tensorlens.records.fields import FunctionId, LongAs, NonNegative, OverwriteId, SiteId, TensorId
from tensorlens.records.further_runs import ConstantInBackward, Intervened, WrittenLine, WrongBackward
from tensorlens.records.threads import OtherThread, SharedSite, ThreadSwitch

RECOMPUTED = "recomputed"
ALL_MODULES = " of all modules"  # ends the kind of a hook that is registered on no module in particular
MAX_NOTED = 20_000  # parameters of all steps together; after that, only steps with a first gradient or a new parameter


@dataclass(frozen=True, slots=True)
class Overwrite:
    """A write to memory that moved no version counter, so autograd's check of saved tensors misses it."""

    index: int
    way: str  # the call that gave access to the memory: "Tensor.data.__get__", "Tensor.numpy", ...
    opened: SiteId | None  # where that call was made
    sites: tuple[SiteId, ...]  # where the write may have been made: one of these lines, between two recorded calls
    tensor: TensorId | None  # the tensor whose memory that call gave access to
    exact: bool = False  # a further run compared the memory line by line: each of `sites` wrote there


@dataclass(frozen=True, slots=True)
class StaleSavedTensor:
    """A saved tensor whose values changed after it was saved and before backward used it, without an error."""

    index: int  # of the event after the check, which is made when the pass begins or when the values are used
    overwrite: OverwriteId | None  # the write that changed it; None: changes in place that moved its version
    node: str  # "MulBackward0"; "" if saved-tensor hooks hide it
    sequence: int  # of the node
    slot: str  # "self", "ctx.x"; RECOMPUTED: a checkpoint saved it when it recomputed
    tensor: TensorId | None
    versions: tuple[int, int]  # when it was saved, when it was used
    before: str  # the first values that differ, as they were saved; "" if unknown
    after: str  # the same values as backward used them
    site: SiteId | None = None  # where it was saved, if not by the call that made the node


@dataclass(frozen=True, slots=True)
class NonfiniteDerivative:
    """A node whose derivative is infinite or NaN at its saved values, in a pass that gave such a gradient."""

    index: int
    node: str
    sequence: int
    infinite: int  # elements of the derivative that are infinite or NaN
    total: int  # elements of the derivative
    selected: tuple[int, ...]  # sequence numbers of the selections (`where`, masks) between node and root
    leaf: TensorId  # a tensor with such a gradient, or the gradient that `autograd.grad` returned
    gradient: str
    factor: str = ""  # of a product: the one that is not finite, "self" or "other"


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A checkpoint whose recomputation saved other values than its forward pass."""

    index: int
    position: int  # of the first saved tensor that differs, from 0
    before: str
    after: str
    random_kept: bool  # the state of the random generators was restored


@dataclass(frozen=True, slots=True)
class Step:
    """A call of an optimizer's `step()`, with the gradients that it found."""

    index: int
    site: SiteId | None
    op: str  # "SGD.step"
    parameters: tuple[TensorId, ...]
    gradients: Annotated[tuple[TensorId | None, ...], LongAs("parameters")]  # the `.grad` of each parameter
    versions: Annotated[tuple[int, ...], LongAs("parameters")]  # of those gradients; -1 where there is none
    carried: tuple[TensorId, ...] = ()  # parameters that momentum or weight decay move too


@dataclass(frozen=True, slots=True)
class Uncalled:
    """A read of a tensor's `backward` method, as in `loss.backward`, without a call before the next optimizer step."""

    index: int
    site: SiteId | None
    tensor: TensorId


@dataclass(frozen=True, slots=True)
class Unregistered:
    """A tensor that requires grad in a plain attribute of a module: `parameters()` does not find it."""

    index: int
    module: str  # name of its type
    name: str  # "hidden[0].weight"
    tensor: TensorId


@dataclass(frozen=True, slots=True)
class FlagOnModule:
    """`module.requires_grad = False`: this makes a plain attribute of the module and freezes nothing."""

    index: int
    site: SiteId | None
    tensors: tuple[TensorId, ...]  # the module's parameters that require grad


@dataclass(frozen=True, slots=True)
class Nested:
    """Tensors inside a list, tuple or dict argument of a custom Function: autograd does not see them as inputs."""

    index: int  # of the event after the call
    tensors: tuple[TensorId, ...]


@dataclass(frozen=True, slots=True)
class RetainedTensors:
    """Live tensors with a graph that an earlier training step made.

    They were made before the last optimizer step or, in a run without optimizers, before the last backward pass.
    """

    index: int
    tensors: tuple[TensorId, ...]


@dataclass(frozen=True, slots=True)
class BoundNames:
    """The tensors that a line's names referred to when the line first stored its result."""

    index: int
    site: SiteId
    names: tuple[str, ...]
    tensors: Annotated[tuple[TensorId | None, ...], LongAs("names")]  # None: no tensor, or an unknown one


@dataclass(frozen=True, slots=True)
class Reached:
    """The names by which a running function referred to the tensors of modules."""

    index: int
    scope: str  # the function
    names: tuple[str, ...]  # "model.fc.weight"
    tensors: Annotated[tuple[TensorId, ...], LongAs("names")]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A function or module that `torch.compile` compiled, when it is called for the first time."""

    index: int
    number: NonNegative  # the calls of `torch.compile` are numbered in their order
    name: str  # "step", "Net", "Net.forward"
    function: FunctionId | None  # its code; None: the code of a library
    site: SiteId | None  # the line that calls `torch.compile`
    called: SiteId | None  # the line that calls it


@dataclass(frozen=True, slots=True)
class LateHook:
    """A hook that is registered on modules after compiled code has run."""

    index: int
    number: NonNegative  # hooks that are registered by one line share a number
    kind: str  # "forward hook", "forward hook of all modules"
    function: FunctionId
    site: SiteId


@dataclass(frozen=True, slots=True)
class ChosenSteps:
    """The training steps that a sampled run records: every `every`-th, or those from `first` to `last`."""

    index: int
    every: int | None
    first: int
    last: int | None


@dataclass(frozen=True, slots=True)
class RecordingSwitch:
    """Recording begins or ends with a training step, or the run ends. What happened in between has no event."""

    index: int
    step: int  # that begins; at the end of the run, the one that has not ended
    recording: bool  # from here on; at the end, until here
    ended: bool = False  # the run ends


@dataclass(frozen=True, slots=True)
class Observations:
    """All facts of a run beside the events."""

    overwrites: tuple[Overwrite, ...] = ()
    stale: tuple[StaleSavedTensor, ...] = ()
    singular: tuple[NonfiniteDerivative, ...] = ()
    recomputed: tuple[Recomputed, ...] = ()
    nested: tuple[Nested, ...] = ()
    steps: tuple[Step, ...] = ()
    uncalled: tuple[Uncalled, ...] = ()
    unregistered: tuple[Unregistered, ...] = ()
    held: tuple[RetainedTensors, ...] = ()
    formulas: tuple[WrongBackward, ...] = ()
    backward_constants: tuple[ConstantInBackward, ...] = ()
    sighted: tuple[BoundNames, ...] = ()
    reached: tuple[Reached, ...] = ()
    flags: tuple[FlagOnModule, ...] = ()
    intervened: tuple[Intervened, ...] = ()
    written: tuple[WrittenLine, ...] = ()
    compiled: tuple[Compiled, ...] = ()
    late: tuple[LateHook, ...] = ()
    threads: tuple[SharedSite, ...] = ()
    chosen: tuple[ChosenSteps, ...] = ()  # only of a sampled run
    switches: tuple[RecordingSwitch, ...] = ()
    others: tuple[OtherThread, ...] = ()
    switching: tuple[ThreadSwitch, ...] = ()
    measured: tuple[training.TrainingMeasured, ...] = ()
    groups: tuple[training.OptimizerGroup, ...] = ()
    statistics: tuple[training.ParameterStatistics, ...] = ()
    moved: tuple[training.ParameterMovement, ...] = ()
    zeroed: tuple[training.ZeroedGradient, ...] = ()
    reduced: tuple[training.ReducedLoss, ...] = ()
    saved_files: tuple[training.SavedToFile, ...] = ()
    memory: tuple[training.HeldMemory, ...] = ()
    nonfinite: tuple[training.NonfiniteSeen, ...] = ()
    origins: tuple[training.FirstNonfinite, ...] = ()
    of_zeros: tuple[training.GradientOfZeros, ...] = ()
    on_zeros: tuple[training.StepsOnZeros, ...] = ()
    hooks: tuple[training.HookCount, ...] = ()
    schedules: tuple[training.LearningRateSchedule, ...] = ()
    evaluating: tuple[training.EvaluatingSteps, ...] = ()
    frozen_statistics: tuple[training.FrozenStatistics, ...] = ()
    loaded: tuple[training.LoadedState, ...] = ()
    term_gradients: tuple[training.TermGradient, ...] = ()
    terms_unknown: tuple[training.TermsUnknown, ...] = ()
    unread: tuple[training_values.UnreadOption, ...] = ()
    initial_statistics: tuple[training_values.InitialStatistics, ...] = ()
    equal: tuple[training_values.EqualParameters, ...] = ()
    equal_rows: tuple[training_values.EqualRows, ...] = ()
    given_arrays: tuple[training_arrays.GivenArray, ...] = ()
    loaded_rates: tuple[training_values.LoadedRate, ...] = ()
    training_mode: tuple[training_values.TrainingModeKept, ...] = ()
    functions_checked: tuple[training_values.FunctionsChecked, ...] = ()
    seeds: tuple[training_values.SeedSet, ...] = ()
    ended_at: tuple[EndedAt, ...] = ()  # these and the next only of a rank of a distributed run
    collectives: tuple[Collective, ...] = ()
    returned: tuple[CollectiveReturned, ...] = ()
    wrapped: tuple[Wrapped, ...] = ()
    wrapper_options: tuple[WrapperOption, ...] = ()
    replicas: tuple[ReplicaState, ...] = ()
    broadcast: tuple[BroadcastBuffer, ...] = ()
    forward_inputs: tuple[ForwardInputs, ...] = ()
    fired: tuple[HooksFired, ...] = ()
    sharded: tuple[Sharded, ...] = ()
    sharded_outputs: tuple[ShardedOutput, ...] = ()
    sharded_hooks: tuple[ShardedHookRan, ...] = ()
    # these and the next only of a run with `--training`
    repeated_indices: tuple[training_values.RepeatedIndices, ...] = ()
    sorted_keys: tuple[training_values.SortedKeys, ...] = ()
    orders_twice: tuple[training_values.OrderTwice, ...] = ()
    zeroed_sequences: tuple[training_values.ZeroedSequences, ...] = ()
    blank_labels: tuple[training_values.BlankLabels, ...] = ()
    weighted_targets: tuple[training_values.WeightedTargets, ...] = ()
    arrays_beside: tuple[training_arrays.ArraysBeside, ...] = ()
    padded_ids: tuple[training_values.PaddedIds, ...] = ()
    plateaus: tuple[training_values.PlateauMetric, ...] = ()
    rates_set: tuple[training_values.RateSetBetween, ...] = ()
    shallow_copies: tuple[training_values.ShallowCopy, ...] = ()
    shared_states: tuple[training_values.SharedState, ...] = ()
    batch_momenta: tuple[training_values.BatchMomentum, ...] = ()
    dropped: tuple[training_values.DroppedByFunction, ...] = ()
    one_array: tuple[training_arrays.EntriesOfOneArray, ...] = ()
    loaded_averages: tuple[training_values.LoadedAverages, ...] = ()
    loaded_products: tuple[training_values.LoadedProducts, ...] = ()
    sampled_labels: tuple[training_samples.SampledLabels, ...] = ()
    evaluated_rows: tuple[training_samples.EvaluatedRows, ...] = ()
    reshaped_arrays: tuple[training_samples.ReshapedArray, ...] = ()
    wrapped_around: tuple[training_samples.WrappedAround, ...] = ()
    normalized_tables: tuple[graph_values.NormalizedTables, ...] = ()
    chosen_own: tuple[graph_values.ChosenOwn, ...] = ()
    chosen_partners: tuple[graph_values.ChosenPartners, ...] = ()
    counted_targets: tuple[graph_values.CountedTargets, ...] = ()
    picked_steps: tuple[graph_values.PickedSteps, ...] = ()
    summed_rows: tuple[graph_values.SummedRows, ...] = ()
    reordered_averages: tuple[training_values.ReorderedAverages, ...] = ()
    own_ids: tuple[graph_values.OwnIds, ...] = ()
    column_derivatives: tuple[graph_values.ColumnDerivatives, ...] = ()
    kept_tensors: tuple[kept_tensors.KeptThenChanged, ...] = ()


RECORDS: dict[str, type] = {name: get_args(hint)[0] for name, hint in get_type_hints(Observations).items()}
"""The class of the facts in each field of `Observations`."""

TABLES: dict[type, str] = {record: name for name, record in RECORDS.items()}
"""The field of `Observations` that holds the facts of a class."""
