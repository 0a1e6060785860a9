"""Records facts about one rank of a distributed run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tensorlens.records.fields import LongAs, SiteId, TensorId


@dataclass(frozen=True, slots=True)
class EndedAt:
    """The time at which the last statement of a rank ended, in seconds since 1970."""

    index: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Collective:
    """The start of a collective of `torch.distributed`. Its number counts the collectives that the rank has started."""

    index: int
    number: int
    op: str  # "all_reduce"
    site: SiteId | None
    group: tuple[int, ...]  # the ranks that take part
    shape: tuple[int, ...]  # of its first tensor
    dtype: str  # "float32"; "": it has no tensor


@dataclass(frozen=True, slots=True)
class CollectiveReturned:
    """The return of the call that started a collective."""

    index: int
    number: int


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A module is given to `DistributedDataParallel`. Its parameters and buffers are in the order of the module."""

    index: int
    number: int  # the wrappers of a rank are numbered in their order
    site: SiteId | None
    group: tuple[int, ...]  # the ranks that have a replica
    names: tuple[str, ...]
    tensors: tuple[TensorId, ...]
    kinds: Annotated[tuple[str, ...], LongAs("names")]  # of each: "trained", "frozen", "buffer"
    forms: Annotated[tuple[str, ...], LongAs("names")]  # of each: "[3, 4] float32"
    options: tuple[str, ...]  # arguments that are true: "find_unused_parameters"


@dataclass(frozen=True, slots=True)
class WrapperOption:
    """A wrapper gets something that changes what it does with gradients, as a communication hook."""

    index: int
    number: int  # of the wrapper
    name: str


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The replica of a wrapper as an optimizer step finds it, or as it is when the run ends.

    Each number is computed from the bits of one tensor: tensors with different numbers have different values. `moments`
    are the passes since the step before: "F" a forward pass through the wrapper after which gradients are averaged, "f"
    one under `no_sync`, "B" a backward pass that changed a gradient.
    """

    index: int
    number: int  # of the wrapper
    step: int  # counts the steps on this wrapper's parameters, from 1; -3: the run ends, after 3 steps
    site: SiteId | None
    values: tuple[int, ...]  # of the parameters and buffers, in the order of `Wrapped`; -1: not computed
    gradients: tuple[int, ...]  # of the parameters; -1: it has none
    moments: str
    sites: tuple[SiteId | None, ...]  # of the moments
    unhooked: tuple[TensorId, ...]  # parameters that the wrapper waits for in vain: its hook is not on them


@dataclass(frozen=True, slots=True)
class ForwardInputs:
    """The inputs of a forward pass through a wrapper in training mode. Tensors with different numbers have different
    values."""

    index: int
    number: int  # of the wrapper
    passed: int  # counts the forward passes, from 1
    site: SiteId | None
    values: tuple[int, ...]  # of the tensors, in their order; (): they are not known


@dataclass(frozen=True, slots=True)
class HooksFired:
    """A backward pass has changed gradients of wrapped parameters, by itself or by averaging."""

    index: int
    number: int  # of the wrapper
    passed: int  # counts these passes, from 1
    site: SiteId | None
    missed: tuple[int, ...]  # the places in `Wrapped` of parameters that require grad and that it did not arrive at


@dataclass(frozen=True, slots=True)
class BroadcastBuffer:
    """A wrapper's forward pass overwrites a buffer with other values, those of rank 0."""

    index: int
    number: int  # of the wrapper
    name: str
    tensor: TensorId
    site: SiteId | None


@dataclass(frozen=True, slots=True)
class Sharded:
    """A group of parameters that `fully_shard` has divided among the ranks, as the first forward pass finds it."""

    index: int
    number: int  # the groups of a rank are numbered in their order
    sites: tuple[SiteId | None, ...]  # of `fully_shard`, and of the first forward pass
    names: tuple[str, ...]
    tensors: tuple[TensorId, ...]  # the parts that this rank holds
    kinds: tuple[str, ...]  # of each parameter: "trained", "frozen"
    forms: Annotated[tuple[str, ...], LongAs("names")]  # of each whole parameter: "[3, 4] float32"
    shards: Annotated[tuple[str, ...], LongAs("names")]  # the shapes of the parts: "[3, 2]"
    mesh: tuple[int, ...]  # the ranks are arranged in this shape
    computes_in: str  # the data type that the forward pass converts to: "bfloat16"; "": none


@dataclass(frozen=True, slots=True)
class ShardedOutput:
    """A sharded module returns a view. A hook on it gathers the parameters again when backward arrives there."""

    index: int
    number: int  # of the module
    site: SiteId | None
    tensor: TensorId


@dataclass(frozen=True, slots=True)
class ShardedHookRan:
    """The hook on an output of a sharded module runs in a backward pass. It is noted once some output was a view."""

    index: int
    number: int  # as of its `ShardedOutput`
