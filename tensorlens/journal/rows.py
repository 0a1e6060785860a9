"""The rows of the journal: one NamedTuple for each kind. `row_buffer` gives each its tag.

The tracer writes rows and the reader reads them. Most calls have no row of their own: a call on the fast path is a run
of ints in the journal (see `CallTemplateRow`). `None` stands for an absent number or text in every field; only in runs
of ints, which can't hold it, `NONE` does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

NONE = -1  # an absent number in a run of ints
SAME = -2  # a state's node: the call left the tensor's node as it was
# A compact call returned: a new tensor; its first argument, after a write; none; an alias as `.data` is one; a tensor
# that was there, as `.grad` is.
NEW, WRITTEN, NOTHING, ALIAS, FOUND = range(5)

# Reasons of gaps. Nearly every program that loads data from NumPy has the first.
SHARED_MEMORY = "memory is shared with an array outside torch: writes through it are not seen"
BROKEN = "the journal of the run was damaged while it ran: what came after is not known"
LOST = "the program closed the journal of the run, or became another program: what came after is not known"
FULL = "the disk that holds the journal of the run was full, and not all that came after could be passed on"

LEFT_OUT = "calls that made or changed tensors are left out: a trace keeps 20,000 from before the last 20,000 calls"

AccessRun = tuple[int, ...]  # tensor id, version, tensor id, version, ...
WriteRun = tuple[int, ...]  # tensor id, version before, version after, ...
GradientChange = tuple[int, Any, Any, WriteRun | None, int | None]  # leaf, values before, after, write, id of `.grad`
# The fields of `model.State` without `grad`; the node may be `SAME`.
State = tuple[int, int | None, bool, bool, str | None, int | None, bool, int | None]


def optional(number: int) -> int | None:
    """Returns None for `NONE`, and any other number as it is."""
    return None if number == NONE else number


def of_alias(storage: int) -> int:
    """Returns what an alias has in the place of a base, from its storage; and the storage from that."""
    return -2 - storage  # below `NONE`, so it is no tensor


def values_text(values: Any) -> str:
    """Returns values as text, as in `[0.5, -1.25]`: nested lists of numbers, a number, or text already."""
    if isinstance(values, list):
        return "[" + ", ".join([f"{v:.4g}" if type(v) is float else values_text(v) for v in values]) + "]"
    return f"{values:.4g}" if isinstance(values, float) else str(values)


class VersionsRow(NamedTuple):
    """The versions that the run uses."""

    tensorlens: str
    torch: str
    python: str


class SiteRow(NamedTuple):
    """A line of the user's code, when it first calls torch."""

    site: int
    file: str
    function: str
    position: tuple[int, int, int, int]  # line, end line, column, end column; columns count bytes
    targets: tuple[str, ...]
    caller: int | None
    through: str
    of_block: bool  # enters or leaves a `with` block; the position is that of its manager


class SourceRow(NamedTuple):
    """The text of a source file as it is when the run meets it."""

    file: str
    text: str


class ClaimRow(NamedTuple):
    """A checked `#:` line."""

    fields: tuple[Any, ...]  # of `records.claim.Claim`


class EndRow(NamedTuple):
    """The live tensors and the names that reach them when the run ends."""

    states: tuple[tuple[Any, ...], ...]  # a `State` and the text of `.grad`, or None
    bindings: tuple[tuple[str, int, str], ...]  # the fields of `model.Binding`


class OutcomeRow(NamedTuple):
    """The end of the run."""

    outcome: str  # one of `model.Outcome`
    exit_code: int | None
    failure: int | None  # number of the failure that ended the script


class CallRow(NamedTuple):
    """A torch call that returned, on the slow path."""

    op: str
    site: int
    inputs: AccessRun
    outputs: AccessRun
    writes: WriteRun
    states: tuple[State, ...]
    first_node: int  # the sequence number that the call's first node gets
    end_node: int  # the one after its last node
    mode: int  # position in `trace_builder.MODES`


class CallTemplateRow(NamedTuple):
    """The part of a call that repeats.

    A compact call is a run of ints: the template's id; the id and version of each input; the id of the result (if there
    is none, of the first input), its base's id or `NONE`, its version; and the first sequence number. An alias has no
    base, and in its place the number of its storage: see `of_alias`.
    """

    template: int
    op: str
    site: int
    shape: tuple[int, ...]
    dtype: str
    device: str
    nbytes: int
    requires_grad: bool
    grad_fn: str | None
    offset: int  # the sequence number of `grad_fn`, minus the first that the call draws
    drawn: int  # how many sequence numbers the call draws: one for each node that it records
    mode: int  # position in `trace_builder.MODES`
    inputs: int  # how many
    result: int  # NEW, WRITTEN, NOTHING, ALIAS or FOUND


class WithinRow(NamedTuple):
    """An optimizer step begins or ends: all calls from here on are made within it."""

    step: str  # "SGD.step"; "" outside steps


class BackwardStartRow(NamedTuple):
    """A backward pass begins."""

    token: int


class BackwardRow(NamedTuple):
    """A backward pass that has ended."""

    token: int  # of its BackwardStartRow
    op: str
    site: int
    roots: AccessRun
    gradients: tuple[GradientChange, ...]
    inputs: tuple[int, ...]
    retain_graph: bool
    create_graph: bool
    failed: bool


class GradModeRow(NamedTuple):
    """A switch of gradient recording."""

    site: int
    mode: int  # position in `trace_builder.MODES`
    cause: str
    entering: bool
    decorator: bool


class RegionRow(NamedTuple):
    """The start or end of a special mode, or of a run of a checkpointed function."""

    token: int | None  # of a checkpoint that is entered
    site: int
    kind: str
    entering: bool
    checkpoint: int | None  # token of the checkpoint whose function runs again


class ChangeRow(NamedTuple):
    """A value that a checkpointed function reads from outside has changed when it is recomputed."""

    site: int | None
    name: str
    before: str
    after: str
    checkpoint: int  # token


class NoticeRow(NamedTuple):
    """A warning."""

    site: int | None
    category: str
    message: str
    op: str | None


class GapRow(NamedTuple):
    """Something that the tracer can't see."""

    reason: str
    site: int | None


class FailureRow(NamedTuple):
    """An exception of a torch call, or the one that ends the script."""

    type: str
    message: str
    op: str | None  # None: Python code raised it
    inputs: AccessRun
    saved: tuple[tuple[Any, ...], ...]  # the fields of `failure_context.SavedTensor`
    stack: tuple[int, ...]
    site: int | None


class ValuesRow(NamedTuple):
    """The plain values that a failing expression reads, or that the expression of the last warning reads."""

    failure: int | None  # None: the last event, a warning
    values: tuple[tuple[str, str, int | None, int | None], ...]  # the fields of `failure_context.Value`


class ArgumentsRow(NamedTuple):
    """The tensor arguments of the Python function of torch that raised."""

    failure: int
    arguments: tuple[tuple[str, int], ...]  # parameter, tensor


class DeadEndsRow(NamedTuple):
    """Nodes of the graph of a failed backward pass, each as its name and sequence number."""

    failure: int
    nodes: tuple[tuple[str, int | None], ...]  # those that can't be differentiated
    stopped_at: tuple[tuple[str, int | None], ...]  # the node that ran last: one or none


class AssignmentRow(NamedTuple):
    """A module's attribute gets another parameter or module."""

    site: int | None
    name: str
    old: tuple[int, ...]
    new: tuple[int, ...]
    shared: bool  # the new one was assigned elsewhere before


class FunctionRow(NamedTuple):
    """A user function that autograd calls back."""

    number: int
    name: str
    defined: int | None  # site
    returns: tuple[int, ...]  # sites
    least: int  # positional arguments that it needs
    most: int | None  # positional arguments that it takes; None: any number


class RegistrationRow(NamedTuple):
    """A user function is given to autograd."""

    number: int
    function: int
    kind: str
    site: int
    target: int | None


class CallbackRunRow(NamedTuple):
    """Autograd has called a user function."""

    registration: int
    returned: int | None  # site of the `return` that ran
    values: tuple[tuple[int | None, str], ...]  # of what it returned: tensor, type
    given: tuple[int, ...]  # the tensors among its arguments
    node: int | None  # sequence number of the custom Function's node that runs
    ending: str  # one of `callbacks.Ending`


class FactRow(NamedTuple):
    """A record of `records.observations`; `RowBuffer.write_fact` makes it."""

    table: str  # the field of `Observations`
    fields: tuple[Any, ...]  # all fields of the record but `index`
