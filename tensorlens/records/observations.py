"""The frozen records of what autograd itself does not notice: memory that changed behind the version counters, and what
backward passes then used or made. All indices say: before the event of this index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args, get_type_hints

from tensorlens.records.fields import OverwriteId, SiteId, TensorId

RECOMPUTED = "recomputed"


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Memory that changed in a way that no version counter told the tensors that autograd had saved."""

    index: int
    way: str  # the call that opened the way: "Tensor.data.__get__", "Tensor.numpy", "torch.from_numpy", ...
    opened: SiteId | None  # the site of that call
    sites: tuple[SiteId, ...]  # what changed it; several: one of these, between two recorded calls
    tensor: TensorId | None  # the tensor through which the way was opened


@dataclass(frozen=True, slots=True)
class Stale:
    """A tensor that a node kept for a backward pass, and that was not any more what it had been when it was kept."""

    index: int  # of the first event in the pass, or of the one that follows the moment of use
    overwrite: OverwriteId | None  # which change of the memory; None: changes in place that moved its version
    node: str  # "MulBackward0"; "" where saved-tensor hooks hide it
    sequence: int  # of the node
    slot: str  # "self", "ctx.x"; RECOMPUTED: a checkpoint saved it in its second run
    tensor: TensorId | None
    versions: tuple[int, int]  # when it was kept, when it was used
    before: str  # its first values that differ, as they were; "" where they were not kept
    after: str
    site: SiteId | None = None  # where it was kept, if not by the call that made the node


@dataclass(frozen=True, slots=True)
class Singular:
    """A node whose derivative is not finite at the values that it saved, below a finite root that gave a gradient that
    is not finite."""

    index: int
    node: str
    sequence: int
    infinite: int  # how many elements of the derivative
    total: int
    selected: tuple[int, ...]  # sequence numbers of selections (`where`, masks) between the node and the root
    leaf: TensorId  # a tensor whose gradient it spoiled (or the gradient, as `autograd.grad` returns it)
    gradient: str


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A checkpoint whose repetition during backward saved other values than the first pass."""

    index: int
    position: int  # the first saved tensor that differs, counted from 0
    before: str
    after: str
    random_kept: bool  # whether the state of the random generators was restored


@dataclass(frozen=True, slots=True)
class Step:
    """A call of an optimizer's `step()`, and the gradients that it found."""

    index: int
    site: SiteId | None
    op: str  # "SGD.step"
    parameters: tuple[TensorId, ...]
    gradients: tuple[TensorId | None, ...]  # the tensor that each parameter's `.grad` held; None: there was none
    versions: tuple[int, ...]  # of those tensors
    carried: tuple[TensorId, ...] = ()  # parameters that more than a gradient moves: momentum, weight decay


@dataclass(frozen=True, slots=True)
class Uncalled:
    """A `backward` method that was named and not called before the next step of an optimizer."""

    index: int
    site: SiteId | None
    tensor: TensorId


@dataclass(frozen=True, slots=True)
class Unregistered:
    """What a module holds in a plain attribute, where `parameters()` does not find it."""

    index: int
    module: str  # the type's name
    name: str  # "hidden[0].weight"
    tensor: TensorId


@dataclass(frozen=True, slots=True)
class Nested:
    """Tensors that a custom Function was given inside a list, tuple or dict: to autograd they are no inputs of it."""

    index: int  # of the event after the call
    tensors: tuple[TensorId, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """Tensors with a graph of their own that were still alive, though made before the last step of an optimizer (or,
    where none had stepped, before the last backward pass)."""

    index: int
    tensors: tuple[TensorId, ...]


@dataclass(frozen=True, slots=True)
class Formula:
    """A custom Function whose `backward` is not the derivative of its `forward`, as `--reference` measures it."""

    index: int
    function: str  # the name of the class
    argument: str  # the name that `forward` has for an input
    backward: tuple[float, ...]  # some values of what `backward` gives this argument for a sum of the outputs,
    differences: tuple[float, ...]  # and the central differences there
    weights: str  # of that sum: "ones", "random", or "given", the gradient that came to the outputs in the run


@dataclass(frozen=True, slots=True)
class Sighted:
    """What names held in the frame, just after the value of a site was stored to them for the first time."""

    index: int
    site: SiteId
    names: tuple[str, ...]
    tensors: tuple[TensorId | None, ...]  # None: no tensor, or none that torch was called with


@dataclass(frozen=True, slots=True)
class Reached:
    """The names under which a running function reached tensors of modules."""

    index: int
    scope: str  # the function
    names: tuple[str, ...]  # "model.fc.weight"
    tensors: tuple[TensorId, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """All that was noticed beside the events."""

    overwrites: tuple[Overwrite, ...] = ()
    stale: tuple[Stale, ...] = ()
    singular: tuple[Singular, ...] = ()
    recomputed: tuple[Recomputed, ...] = ()
    nested: tuple[Nested, ...] = ()
    steps: tuple[Step, ...] = ()
    uncalled: tuple[Uncalled, ...] = ()
    unregistered: tuple[Unregistered, ...] = ()
    held: tuple[Held, ...] = ()
    formulas: tuple[Formula, ...] = ()
    sighted: tuple[Sighted, ...] = ()
    reached: tuple[Reached, ...] = ()


RECORDS: dict[str, type] = {name: get_args(hint)[0] for name, hint in get_type_hints(Inspection).items()}
"""The record of each field of `Inspection`."""

TABLES: dict[type, str] = {record: name for name, record in RECORDS.items()}
"""The field of `Inspection` that holds a record."""
