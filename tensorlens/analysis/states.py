"""Indexes the states of tensors over time: version, graph node, storage and `.grad` after each event."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter

from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.records.model import Backward, Call, Event, State, Trace

_INDEX = itemgetter(0)
_SET = "set"  # the text of a gradient whose values were not recorded


class StateHistory:
    """Keeps the states that the calls of a trace recorded, by tensor and in order."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._states: dict[int, list[tuple[int, State]]] = defaultdict(list)
        self._storages: dict[int, set[int]] = {}
        self._requiring_grad: dict[int, list[int]] = {}  # tensor -> the calls that found it requiring grad
        for event in trace.events:
            if isinstance(event, Call):
                for state in event.states:
                    self._states[state.tensor].append((event.index, state))

    def state(self, tensor: int, at: int) -> State | None:
        """Returns the state of a tensor after event `at`; if none was recorded so early, the first one recorded
        later."""
        states = self._states.get(tensor)
        if not states:
            return None
        position = bisect_right(states, at, key=_INDEX)
        return states[max(position - 1, 0)][1]

    def state_before(self, tensor: int, index: int) -> State | None:
        """Returns the last state recorded before event `index`; None if none was."""
        states = self._states.get(tensor, [])
        position = bisect_left(states, index, key=_INDEX)
        return states[position - 1][1] if position else None

    def storages(self, tensor: int) -> set[int]:
        """Returns every storage that the tensor used: `.data = ...` and `set_` change it."""
        found = self._storages.get(tensor)
        if found is None:
            used = (self._trace.tensors[tensor].storage, *(state.storage for _, state in self._states.get(tensor, ())))
            found = self._storages[tensor] = {storage for storage in used if storage is not None}
        return found

    def last_storage(self, tensor: int) -> int | None:
        """Returns the storage that the tensor used last."""
        for _, state in reversed(self._states.get(tensor, ())):
            if state.storage is not None:
                return state.storage
        return self._trace.tensors[tensor].storage

    def last_requiring_grad(self, tensor: int, before: int) -> int | None:
        """Returns the index of the last call before event `before` that found the tensor requiring grad and recorded
        its state; None if there is none."""
        found = self._requiring_grad.get(tensor)
        if found is None:
            pairs = ((index, self.state(tensor, index - 1)) for index, _ in self._states.get(tensor, ()))
            found = self._requiring_grad[tensor] = [index for index, state in pairs if state and state.requires_grad]
        position = bisect_left(found, before)
        return found[position - 1] if position else None


@once_per_trace
def states_of(trace: Trace) -> StateHistory:
    return StateHistory(trace)


@once_per_trace
def last_states(trace: Trace) -> list[State]:
    """Returns the states of the tensors at the end of the run.

    If no tensor was alive then, or the run was cut short, these are the last states recorded.
    """
    if trace.end.states:
        return list(trace.end.states)
    return sorted(states_after(trace), key=lambda state: state.tensor)


def states_after(trace: Trace, end: int | None = None) -> Iterator[State]:
    """Yields the last state of each tensor in the first `end` events, in the order in which the run met the tensors.

    A version is that of the version counter, which aliases may share. `.grad` is as backward passes and assignments
    left it.
    """
    states: dict[int, State] = {}
    versions: dict[int, int] = {}  # by version counter
    gradients = GradientTexts()
    for event in trace.events[:end]:
        if isinstance(event, Call):
            for state in event.states:
                states[state.tensor] = state
                if state.version is not None:
                    versions[trace.tensors[state.tensor].counter] = state.version
            versions.update({trace.tensors[write.tensor].counter: write.after for write in event.writes})
        gradients.observe(event)
    for number, state in states.items():
        version = None if state.version is None else versions.get(trace.tensors[number].counter, state.version)
        grad = gradients.texts.get(number)
        is_same = version == state.version and grad == state.grad  # nearly every one of hundreds of thousands
        yield state if is_same else replace(state, version=version, grad=grad)


class GradientTexts:
    """Follows the `.grad` of each tensor through the events: its values as text, or that it is set."""

    def __init__(self) -> None:
        self.texts: dict[int, str | None] = {}
        self._owners: dict[int, int] = {}  # the tensor in `x.grad` -> x

    def observe(self, event: Event) -> dict[int, str | None]:
        """Follows an event, and returns the texts that it sets."""
        found: dict[int, str | None] = {}
        if isinstance(event, Backward):
            for gradient in event.gradients:
                found[gradient.tensor] = gradient.after
                if gradient.held is not None:
                    self._owners[gradient.held] = gradient.tensor
        elif isinstance(event, Call):
            for write in event.writes:
                owner = self._owners.get(write.tensor)
                if owner is not None and self.texts.get(owner):
                    found[owner] = _SET
            if event.op.endswith(".grad.__set__") and event.inputs:
                values = [access.tensor for access in event.inputs[1:]]  # empty for `x.grad = None`
                found[event.inputs[0].tensor] = _SET if values else None
                self._owners.update(dict.fromkeys(values, event.inputs[0].tensor))
        self.texts.update(found)
        return found
