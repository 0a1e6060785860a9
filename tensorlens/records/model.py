"""The frozen records that a traced run leaves behind.

Everything a person reads is derived from these, later, without torch. Ids are ours and never reused; sites and
tensors are tables, events hold indices into them. `soundness.check(trace)` states the invariants.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Literal

from tensorlens.records.callbacks import Callbacks
from tensorlens.records.claim import Claim
from tensorlens.records.failure_context import Argument, Assignment, Node, Value
from tensorlens.records.fields import FailureId, NonNegative, Positive, SiteId, StorageId, TensorId
from tensorlens.records.observations import Inspection
from tensorlens.records.reference import Reference

Mode = Literal["grad", "no_grad", "inference"]
Outcome = Literal["ok", "error", "exit", "timeout", "killed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a source file: lines from 1, columns from 0 in characters, end exclusive."""

    file: str
    line: Positive
    column: NonNegative
    end_line: Positive
    end_column: NonNegative


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the user's code from which torch was called, and what the bytecode there does with the result."""

    id: int
    span: Span
    function: str  # qualified name of the code object; "<module>" at the top level
    caller: SiteId | None  # site that called this function when this site first ran
    targets: tuple[
        str, ...
    ]  # names the value is stored to at once, in order: `a, b = ...` gives ("a", "b"); a starred one is "*rest"
    through: str = ""  # "Module.to": the function that was called there, where it is none of torch's own


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor object, as it was when first met."""

    id: int
    storage: StorageId | None  # None: it has no storage (sparse, functorch's wrappers, ...)
    counter: int  # tensors with the same number share one version counter
    shape: tuple[int, ...]
    dtype: str  # "float32"
    device: str  # "cpu"
    type: str  # "Tensor", "Parameter", or the subclass's name
    base: TensorId | None  # id of the tensor that this one is a view of (autograd's `_base`)
    created_by: int | None  # index of the Call that returned it first; None: first met as an input


@dataclass(frozen=True, slots=True)
class Storage:
    """A block of memory; `nbytes` as it was when first met."""

    id: int
    nbytes: NonNegative


@dataclass(frozen=True, slots=True)
class State:
    """What autograd says of a tensor at one moment."""

    tensor: TensorId
    version: int | None  # None: an inference tensor has no version
    requires_grad: bool
    is_leaf: bool
    grad_fn: str | None  # "SigmoidBackward0"
    node: int | None  # sequence number of grad_fn
    retains_grad: bool = False
    grad: str | None = None  # short text of `.grad`; kept only in end states
    storage: StorageId | None = None  # where it lies now: `.data = ...`, `set_` and the like move a tensor


@dataclass(frozen=True, slots=True)
class Access:
    """A tensor at a version."""

    tensor: TensorId
    version: int | None


@dataclass(frozen=True, slots=True)
class Write:
    """A change in place: the version of `tensor` moved from `before` to `after` during a call."""

    tensor: TensorId
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Call:
    """One torch call that returned. `nodes` is the half-open bracket of sequence numbers that it drew."""

    index: int
    op: str  # "Tensor.sigmoid", "torch.tensor", "nn.functional.relu", "nn.Parameter", "optim.SGD", "Square.apply"
    site: SiteId
    inputs: tuple[Access, ...]
    outputs: tuple[Access, ...]
    writes: tuple[Write, ...]
    states: tuple[State, ...]  # of each output, and of each tensor whose state the call changed
    nodes: tuple[int, int]
    mode: Mode
    within: str = ""  # "SGD.step": the optimizer step that made the call


@dataclass(frozen=True, slots=True)
class Gradient:
    """`.grad` of one leaf (or of a tensor that retains its gradient) around a backward call, as short text."""

    tensor: TensorId
    before: str | None
    after: str | None
    write: Write | None = None  # accumulation in place into the tensor that `.grad` holds
    held: TensorId | None = None  # the tensor that `.grad` holds afterwards


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward pass: `Tensor.backward`, `autograd.backward` or `autograd.grad`. What ran during it lies between
    `started` and `index` in the list of events."""

    index: int
    op: str
    site: SiteId
    roots: tuple[Access, ...]
    gradients: tuple[Gradient, ...]
    started: int
    retain_graph: bool
    create_graph: bool
    failed: bool
    inputs: tuple[TensorId, ...] = ()  # tensors that gradients were asked for (`autograd.grad`, `inputs=`)


@dataclass(frozen=True, slots=True)
class GradMode:
    """Gradient recording was switched: entering or leaving `no_grad`, `enable_grad`, `inference_mode`."""

    index: int
    site: SiteId
    mode: Mode  # the mode from here on
    cause: str  # "no_grad", "enable_grad", "set_grad_enabled", "inference_mode"
    entering: bool
    decorator: bool = False  # the site is the decorator's line


@dataclass(frozen=True, slots=True)
class Region:
    """The user's code entered or left a special mode, or the function of a checkpoint began or ended a run."""

    index: int
    site: SiteId
    name: str  # "detect_anomaly", "saved_tensors_hooks", "func.vmap", "checkpoint", "recomputation", ...
    entering: bool
    checkpoint: int | None = None  # of a recomputation: the event that entered what is run again


@dataclass(frozen=True, slots=True)
class Change:
    """What a checkpointed function reads from outside was another when the function was run again."""

    index: int
    site: SiteId | None  # the line that changed it
    name: str  # "config['dtype']", "training of 1 (Dropout)"
    before: str
    after: str
    checkpoint: int | None  # the event that entered it


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning that was emitted, whether the script's filters showed it or not."""

    index: int
    site: SiteId | None
    category: str
    message: str
    op: str | None
    values: tuple[Value, ...] = ()  # the plain values that the expression at the site reads


@dataclass(frozen=True, slots=True)
class Gap:
    """Something the tracer could not see; `count` times for the same reason at the same site."""

    index: int
    reason: str
    site: SiteId | None
    count: Positive = 1


Event = Call | Backward | GradMode | Notice | Gap | Region | Change


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor that a node of a failing graph keeps for its backward formula, read after the failure."""

    node: str  # "SigmoidBackward0"
    sequence: int
    slot: str  # "result", "self", "saved_tensors[0]"; "output 0" of a node whose gradient was not a number
    tensor: TensorId | None  # a known tensor object on the same memory with the same version counter, if one is alive
    storage: StorageId | None
    shape: tuple[int, ...]
    expected: int | None  # saved at this version; None: not reported
    found: int | None  # the version found by the check
    problem: Literal["version", "freed", "nan", "other"] | None  # None: intact
    message: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that reached the user's code from a torch call, or that ended the script."""

    index: int  # position among the events: it happened before the event of this index
    kind: str  # a catalogue code where the message is known, else ""
    type: str
    message: str
    site: SiteId | None  # the user's innermost line from which torch was called
    op: str | None  # the torch call that raised; None: raised by Python code
    inputs: tuple[Access, ...]
    saved: tuple[SavedTensor, ...]  # the autopsy of a failed backward; what raised comes first
    stack: tuple[
        SiteId, ...
    ]  # the user's sites from the outermost to where it was raised: past `site`, in code torch ran
    caught: bool  # False: it ended the script
    values: tuple[Value, ...] = ()  # known for the failure that ended the script
    arguments: tuple[Argument, ...] = ()  # likewise
    dead_ends: tuple[Node, ...] = ()  # nodes of its graph that can't be differentiated
    stopped_at: Node | None = None  # the node that still held what it saved and comes first


@dataclass(frozen=True, slots=True)
class Binding:
    """A name that reached a tensor when the run ended: `out`, `model.fc.weight`, `batch[0]`."""

    name: str
    tensor: TensorId
    scope: str  # "<module>", or the function whose frame the failure left


@dataclass(frozen=True, slots=True)
class Script:
    """The program that ran and how it ended. `failure` indexes `Trace.failures`."""

    path: str
    argv: tuple[str, ...]
    folder: str  # absolute folder of the script; files below it are shown relative to it
    outcome: Outcome
    exit_code: int | None
    failure: FailureId | None
    rank: Rank | None = None  # of a distributed run


@dataclass(frozen=True, slots=True)
class Rank:
    """One process of a distributed run: `number` counts from 0 to `world` less one."""

    number: int
    world: int
    host: str


@dataclass(frozen=True, slots=True)
class Versions:
    tensorlens: str
    torch: str
    python: str


@dataclass(frozen=True, slots=True)
class Total:
    """How often one op ran at one site in the whole run, including calls that left the window."""

    site: SiteId
    op: str
    count: Positive


@dataclass(frozen=True, slots=True)
class End:
    """The tensors alive when the run ended, and the names that reached them."""

    states: tuple[State, ...] = ()
    bindings: tuple[Binding, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """One run as plain data. `events` are in order; a missing index is of a call that a long run has folded."""

    versions: Versions
    script: Script
    sources: dict[str, str]  # file -> text, for every file that a site points into
    sites: tuple[Site, ...]
    storages: tuple[Storage, ...]
    tensors: tuple[Tensor, ...]
    events: tuple[Event, ...]
    failures: tuple[Failure, ...] = ()
    end: End = field(default_factory=End)
    claims: tuple[Claim, ...] = ()
    totals: tuple[Total, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    callbacks: Callbacks = field(default_factory=Callbacks)
    inspection: Inspection = field(default_factory=Inspection)
    reference: Reference | None = None  # `--reference` was asked

    def position(self, index: int) -> int:
        """Where in `events` the first one is whose index is at least `index`."""
        return bisect_left(self.events, index, key=lambda event: event.index)

    def event(self, index: int | None) -> Event | None:
        """The event with this index, if it is still there."""
        if index is None:
            return None
        position = self.position(index)
        found = self.events[position] if position < len(self.events) else None
        return found if found is not None and found.index == index else None
