"""Answers what was known of each tensor before an event: its state, its storage, and which tensors share the
storage."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from tensorlens.analysis.states import states_of
from tensorlens.analysis.story.current_names import CurrentNames
from tensorlens.records.model import Backward, Call, State, Trace

_PARTIAL_WRITES = ("__setitem__", "index_", "masked_", "scatter_", "put_", "fill_diagonal_")
_LISTED = 3


class StorageUsers:
    """Indexes the tensors that calls used in each storage, with the event of their first use there.

    Only a write asks for it.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def first_use(self) -> dict[int, dict[int, int]]:
        """The tensors of each storage, each with the event."""
        return self._first_uses[0]

    @property
    def first_parameter(self) -> dict[int, int]:
        """The first event that used a parameter in each storage."""
        return self._first_uses[1]

    @cached_property
    def last_use(self) -> dict[int, int]:
        return _last_uses(self._trace)

    @cached_property
    def _first_uses(self) -> tuple[dict[int, dict[int, int]], dict[int, int]]:
        trace = self._trace
        uses: dict[int, dict[int, int]] = defaultdict(dict)
        parameters: dict[int, int] = {}
        storages: dict[int, int] = {}  # tensor -> the storage in its last recorded state
        noted: dict[int, int | None] = {}  # tensor -> the storage in which its last use was noted: most are the same
        for event in trace.events:
            if not isinstance(event, Call):
                continue
            for state in event.states:
                if state.storage is not None:
                    storages[state.tensor] = state.storage
            for access in event.inputs + event.outputs:
                number = access.tensor
                if number in noted and noted[number] == storages.get(number, noted[number]):
                    continue
                tensor = trace.tensors[number]
                storage = noted[number] = storages.get(number, tensor.storage)
                if storage is not None:
                    uses[storage].setdefault(number, event.index)
                    if tensor.type == "Parameter":
                        parameters.setdefault(storage, event.index)
        return uses, parameters


class TensorsBefore:
    """Answers questions about the tensors of a trace as they were before event `index`."""

    def __init__(self, trace: Trace, names: CurrentNames, users: StorageUsers, index: int) -> None:
        self.trace = trace
        self.names = names.names
        self.current = names
        self._users = users
        self._index = index

    def state(self, tensor: int) -> State | None:
        return states_of(self.trace).state_before(tensor, self._index)

    def requires_grad(self, tensor: int) -> bool:
        state = self.state(tensor)
        return state is not None and state.requires_grad

    def storage(self, tensor: int) -> int | None:
        state = self.state(tensor)
        return state.storage if state and state.storage is not None else self.trace.tensors[tensor].storage

    def memory(self, tensor: int) -> int:
        """Returns the tensor's storage; for a tensor without one, a negative number of its own."""
        storage = self.storage(tensor)
        return -1 - tensor if storage is None else storage

    def mark(self, tensor: int) -> str:
        """Returns the mark of the tensor's storage, `#2`."""
        return self.names.storage_mark(self.storage(tensor))

    def is_parameter(self, tensor: int) -> bool:
        return self.trace.tensors[tensor].type == "Parameter"

    def shares_with_parameter(self, tensor: int) -> bool:
        """Returns whether the tensor is a parameter or shares the storage of one."""
        first = self._users.first_parameter.get(self.memory(tensor), self._index)
        return self.is_parameter(tensor) or first < self._index

    def is_old_memory(self, tensor: int) -> bool:
        """Returns whether another tensor used this one's storage before: `out.data.zero_()` writes into `out`."""
        storage = self.trace.tensors[tensor].storage
        return storage is not None and any(other != tensor for other in self._met_in(storage))

    def effects(self, call: Call, others: list[int], written: int) -> tuple[str, ...]:
        """Puts into words what a write does to the `others` in the same storage."""
        texts = [self._effect(call, written, other) for other in others[:_LISTED]]
        return (*texts, f"{len(others) - _LISTED} more in the same memory") if len(others) > _LISTED else tuple(texts)

    def named_in_memory(self, call: Call, written: int) -> list[int]:
        """Returns the other tensors in the storage of `written` that have a name then, if they are used in this run of
        the line or later, or alive at the end."""
        storage = self.storage(written)
        others = sorted(self._met_in(storage)) if storage is not None else []
        return [
            other
            for other in others
            if other != written
            and self._users.last_use.get(other, -1) >= self._index
            and self.storage(other) == storage
            and self.names.is_named(other)
            and self.current.name(other, call.index) is not None
        ]

    def _met_in(self, storage: int) -> list[int]:
        """Returns the tensors that earlier calls used in a storage."""
        return [tensor for tensor, first in self._users.first_use.get(storage, {}).items() if first < self._index]

    def _effect(self, call: Call, written: int, other: int) -> str:
        name = self.current.name(other, call.index)
        same = self.trace.tensors[other].counter == self.trace.tensors[written].counter
        effect = "changes too" if self.surely_changes(other, written, call.op) else "shares its memory"
        return f"{name} {effect}" + ("" if same else ", its version stays")

    def surely_changes(self, other: int, written: int, op: str) -> bool:
        """Returns whether a write to `written` surely changes values of `other`.

        It does if `other` contains `written`, or if `written` contains `other` and all of it was written.
        """
        tensors = self.trace.tensors
        if tensors[written].base is None and tensors[other].base is None:
            return tensors[written].shape == tensors[other].shape
        if tensors[written].base == other:
            return True
        return tensors[other].base == written and not op.rpartition(".")[2].startswith(_PARTIAL_WRITES)


def _last_uses(trace: Trace) -> dict[int, int]:
    """Maps each tensor to the last event that uses it; one that is alive at the end, to the end of the run."""
    last: dict[int, int] = {}
    for event in trace.events:
        if isinstance(event, Call):
            for access in event.inputs + event.outputs:
                last[access.tensor] = event.index
        elif isinstance(event, Backward):
            last.update({access.tensor: event.index for access in event.roots})
    end = trace.events[-1].index + 1 if trace.events else 0
    return last | {state.tensor: end for state in trace.end.states}
