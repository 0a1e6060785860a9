"""Defines `Trace`, the record of one run, and the frozen records in it.

Every report is derived from a trace, without torch. Sites, tensors and storages are tables; other records refer to them
by position (`fields.SiteId`, `fields.TensorId`, ...). `invariants.validate` checks a trace.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from tensorlens.records.callbacks import Callbacks
from tensorlens.records.claim import Claim
from tensorlens.records.eager import EagerComparison
from tensorlens.records.failure_context import Argument, Assignment, Node, SavedTensor, Value
from tensorlens.records.fields import FailureId, NonNegative, Positive, SiteId, StorageId, TensorId
from tensorlens.records.observations import Observations
from tensorlens.records.reference import Reference

Mode = Literal["grad", "no_grad", "inference"]
Outcome = Literal["ok", "error", "exit", "timeout", "killed", "interrupted", "recording"]  # the last: it goes on


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a source file. Lines count from 1, columns from 0 in characters; the end is exclusive."""

    file: str
    line: Positive
    column: NonNegative
    end_line: Positive
    end_column: NonNegative


@dataclass(frozen=True, slots=True)
class Site:
    """An instruction of the user's code that called torch, and the names that its result is stored to."""

    id: int
    span: Span
    function: str  # qualified name of the code object; "<module>" at the top level
    caller: SiteId | None  # that called this function when this site first ran
    targets: tuple[str, ...]  # names that the result is stored to: `a, *rest = ...` gives ("a", "*rest")
    through: str = ""  # "Module.to": a method or library function that the line called and that called torch


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor object, as it was when the tracer first met it."""

    id: int
    storage: StorageId | None  # None: it has none (sparse tensors, functorch's wrappers, ...)
    counter: int  # tensors with the same number share one version counter
    shape: tuple[int, ...]
    dtype: str  # "float32"
    device: str  # "cpu"
    type: str  # "Tensor", "Parameter", or the subclass's name
    base: TensorId | None  # the tensor that this one is a view of (autograd's `_base`)
    created_by: int | None  # index of the Call that returned it; None: first met as an input


@dataclass(frozen=True, slots=True)
class Storage:
    """A block of memory, with its size when the tracer first met it."""

    id: int
    nbytes: NonNegative


@dataclass(frozen=True, slots=True)
class State:
    """The autograd state of a tensor after a call, or when the run ended."""

    tensor: TensorId
    version: int | None  # None: an inference tensor has no version
    requires_grad: bool
    is_leaf: bool
    grad_fn: str | None  # "SigmoidBackward0"
    node: int | None  # sequence number of grad_fn
    retains_grad: bool = False
    grad: str | None = None  # short text of `.grad`; only when the run ended
    storage: StorageId | None = None  # its storage at that time: `.data = ...` and `set_` change it


@dataclass(frozen=True, slots=True)
class Access:
    """A tensor, and its version when a call used it."""

    tensor: TensorId
    version: int | None


@dataclass(frozen=True, slots=True)
class Write:
    """A change in place: the version of `tensor` before and after the call."""

    tensor: TensorId
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Call:
    """A torch call that returned."""

    index: int
    op: str  # "Tensor.sigmoid", "torch.tensor", "nn.functional.relu", "nn.Parameter", "optim.SGD", "Square.apply"
    site: SiteId
    inputs: tuple[Access, ...]
    outputs: tuple[Access, ...]
    writes: tuple[Write, ...]
    states: tuple[State, ...]  # after the call: of each output, and of each tensor whose state changed
    nodes: tuple[int, int]  # the sequence numbers of the nodes it made, the end exclusive
    mode: Mode
    within: str = ""  # "SGD.step": the optimizer step that made the call


@dataclass(frozen=True, slots=True)
class Gradient:
    """`.grad` of a leaf, or of a tensor that retains it, before and after a backward pass, as short text."""

    tensor: TensorId
    before: str | None
    after: str | None
    write: Write | None = None  # the change in place of the tensor in `.grad`, if backward added to it
    held: TensorId | None = None  # the tensor in `.grad` afterwards


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward pass: `Tensor.backward`, `autograd.backward` or `autograd.grad`.

    The events with an index from `started` to `index` happened during the pass.
    """

    index: int
    op: str
    site: SiteId
    roots: tuple[Access, ...]
    gradients: tuple[Gradient, ...]
    started: int
    retain_graph: bool
    create_graph: bool
    failed: bool
    inputs: tuple[TensorId, ...] = ()  # the tensors whose gradients `autograd.grad` or `inputs=` asked for


@dataclass(frozen=True, slots=True)
class GradMode:
    """A switch of gradient recording: `no_grad`, `enable_grad` or `inference_mode` is entered or left."""

    index: int
    site: SiteId
    mode: Mode  # the mode from here on
    cause: str  # "no_grad", "enable_grad", "set_grad_enabled", "inference_mode"
    entering: bool
    decorator: bool = False  # the site is the decorator's line


@dataclass(frozen=True, slots=True)
class Region:
    """The start or end of a special mode, or of a run of a checkpointed function."""

    index: int
    site: SiteId
    name: str  # "detect_anomaly", "saved_tensors_hooks", "func.vmap", "checkpoint", "recomputation", ...
    entering: bool
    checkpoint: int | None = None  # of a recomputation: index of the event that entered the checkpoint


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between two runs of a checkpointed function: a value that it reads from outside had changed."""

    index: int
    site: SiteId | None  # the line that changed it
    name: str  # "config['dtype']", "training of 1 (Dropout)"
    before: str
    after: str
    checkpoint: int | None  # index of the event that entered the checkpoint


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning, whether the script's filters showed it or not."""

    index: int
    site: SiteId | None
    category: str
    message: str
    op: str | None
    values: tuple[Value, ...] = ()  # the plain values that the expression at the site reads


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that the tracer could not see: `count` times for the same reason at the same site."""

    index: int
    reason: str
    site: SiteId | None
    count: Positive = 1


Event = Call | Backward | GradMode | Notice | Gap | Region | Change


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of a torch call, or the one that ended the script."""

    index: int  # it happened before the event of this index
    kind: str  # the code of the diagnostic whose message pattern matches, else ""
    type: str
    message: str
    site: SiteId | None  # the user's innermost line that called torch
    op: str | None  # the torch call that raised; None: Python code raised
    inputs: tuple[Access, ...]
    saved: tuple[SavedTensor, ...]  # of a failed backward pass; the one that raised comes first
    stack: tuple[SiteId, ...]  # the user's lines, the outermost first; torch may have called the last: a hook
    caught: bool  # False: it ended the script
    values: tuple[Value, ...] = ()  # `values` and `arguments`: only of the failure that ended the script
    arguments: tuple[Argument, ...] = ()
    dead_ends: tuple[Node, ...] = ()  # nodes of its graph without a derivative
    stopped_at: Node | None = None  # the node that ran last


@dataclass(frozen=True, slots=True)
class Binding:
    """A name that referred to a tensor when the run ended: `out`, `model.fc.weight`, `batch[0]`."""

    name: str
    tensor: TensorId
    scope: str  # "<module>", or a function that was running when the script failed


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
    """One process of a distributed run of `world` processes."""

    number: int
    world: int
    host: str
    ended: float = 0.0  # when its process ended, in seconds since 1970; 0: it has not
    run: str = ""  # what the launcher calls this run, and how often it restarted the ranks


@dataclass(frozen=True, slots=True)
class Versions:
    tensorlens: str
    torch: str
    python: str


@dataclass(frozen=True, slots=True)
class Total:
    """The number of calls of one op at one site, with those that a long run has folded: it keeps them no longer."""

    site: SiteId
    op: str
    count: Positive


@dataclass(frozen=True, slots=True)
class End:
    """The live tensors when the run ended, and the names that refer to them."""

    states: tuple[State, ...] = ()
    bindings: tuple[Binding, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """One run as plain data. Events are in order; a missing index belongs to a call that a long run has folded."""

    versions: Versions
    script: Script
    sources: dict[str, str]  # file -> text, of every file with a site
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
    inspection: Observations = field(default_factory=Observations)
    reference: Reference | None = None  # only of a run with `--reference`
    eager: EagerComparison | None = None  # only of a run with `--reference=eager`

    def position(self, index: int) -> int:
        """Returns the position in `events` of the first one with this index or a later one."""
        count = len(self.events)
        likely = count - 1 - (self.events[-1].index - index) if count else 0  # nothing after it was folded
        if 0 <= likely < count and self.events[likely].index == index:
            return likely
        return bisect_left(self.events, index, key=attrgetter("index"))

    def event(self, index: int | None) -> Event | None:
        """Returns the event with this index; None if a long run has folded it."""
        position = len(self.events) if index is None else self.position(index)
        event = self.events[position] if position < len(self.events) else None
        return event if event and event.index == index else None
