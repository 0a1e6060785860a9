"""Lists how the states of tensors change over the moments of a run: only the differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tensorlens.analysis.moments.run_moments import Moments
from tensorlens.analysis.states import GradientTexts
from tensorlens.records.model import Access, Backward, Call, Failure, State, Trace, Write

_Flags = tuple[bool, bool, str | None, int | None]


@dataclass(frozen=True, slots=True)
class StateChange:
    """The autograd state of a tensor from a moment on."""

    at: int
    tensor: int
    requires_grad: bool
    is_leaf: bool
    grad_fn: str | None
    storage: int | None


@dataclass(slots=True)
class StateChanges:
    """Everything that changes, each list in the order of the moments."""

    states: list[StateChange] = field(default_factory=list)
    versions: list[tuple[int, int, int]] = field(default_factory=list)  # moment, version counter, version
    gradients: list[tuple[int, int, str | None]] = field(default_factory=list)  # moment, tensor, text of `.grad`


def state_changes(trace: Trace, moments: Moments) -> StateChanges:
    """Follows the states, versions and gradients of all tensors through a run."""
    follower = _Follower(trace)
    gradients = GradientTexts()
    failures = sorted(trace.failures, key=lambda failure: failure.index, reverse=True)
    for event in trace.events:
        while failures and failures[-1].index <= event.index:
            follower.note_failure(failures.pop(), moments)
        at = moments.since(event.index)
        if isinstance(event, Call):
            follower.note_accesses(event.inputs, at)
            for state in event.states:
                follower.note(state, at)
            follower.note_accesses(event.outputs, at)
            follower.note_writes(event.writes, at)
        elif isinstance(event, Backward):
            follower.note_accesses(event.roots, at)
            follower.note_writes([each.write for each in event.gradients if each.write is not None], at)
        for tensor, text in gradients.observe(event).items():
            follower.note_gradient(tensor, text, at)
    while failures:
        follower.note_failure(failures.pop(), moments)
    end = len(moments.items) - 1
    for state in trace.end.states:
        follower.note(state, end)
        follower.note_gradient(state.tensor, state.grad, end)
    return follower.changes


class _Follower:
    def __init__(self, trace: Trace) -> None:
        self.changes = StateChanges()
        self._tensors = trace.tensors
        self._flags: dict[int, _Flags] = {}
        self._versions: dict[int, int] = {}
        self._gradients: dict[int, str | None] = {}

    def note(self, state: State, at: int) -> None:
        tensor = self._tensors[state.tensor]
        storage = tensor.storage if state.storage is None else state.storage
        flags = (state.requires_grad, state.is_leaf, state.grad_fn, storage)
        if self._flags.get(state.tensor) != flags:
            self._flags[state.tensor] = flags
            self.changes.states.append(StateChange(at, state.tensor, *flags))
        if state.version is not None:
            self.note_version(tensor.counter, state.version, at)

    def note_failure(self, failure: Failure, moments: Moments) -> None:
        """Notes the versions that a rejected call was given."""
        at = moments.of_failure(failure)
        if at is not None:
            self.note_accesses(failure.inputs, at)

    def note_accesses(self, accesses: Iterable[Access], at: int) -> None:
        """Notes the versions that an event used: a long run may have folded the writes that made them."""
        for access in accesses:
            if access.version is not None:
                self.note_version(self._tensors[access.tensor].counter, access.version, at)

    def note_writes(self, writes: Iterable[Write], at: int) -> None:
        for write in writes:
            self.note_version(self._tensors[write.tensor].counter, write.after, at)

    def note_version(self, counter: int, version: int, at: int) -> None:
        if self._versions.get(counter) != version:
            self._versions[counter] = version
            self.changes.versions.append((at, counter, version))

    def note_gradient(self, tensor: int, text: str | None, at: int) -> None:
        if self._gradients.get(tensor) != text:
            self._gradients[tensor] = text
            self.changes.gradients.append((at, tensor, text))


def touched(moments: Moments, place: int) -> Iterator[tuple[int, int | None, bool]]:
    """Yields (tensor, version, whether it is a result) for the tensors that a moment reads, returns or changes."""
    what = moments.items[place].what
    if isinstance(what, Call):
        results = {access.tensor for access in what.outputs} | {write.tensor for write in what.writes}
        versions = {access.tensor: access.version for access in (*what.inputs, *what.outputs)}
        versions |= {write.tensor: write.after for write in what.writes}
        yield from ((tensor, version, tensor in results) for tensor, version in versions.items())
    elif isinstance(what, Backward):
        yield from ((access.tensor, access.version, False) for access in what.roots)
    elif isinstance(what, Failure):
        yield from ((access.tensor, access.version, False) for access in what.inputs)
