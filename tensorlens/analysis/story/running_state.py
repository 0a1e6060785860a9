"""What is known of every tensor at one point of a trace, for whoever reads the events in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tensorlens.analysis.naming.names import Names
from tensorlens.records.model import Backward, Call, Event, State, Trace

_PARTIAL_WRITES = ("__setitem__", "index_", "masked_", "scatter_", "put_", "fill_diagonal_")
_LISTED = 3


class RunningState:
    """Each tensor's last state, and who lies in which storage. `observe` moves it on."""

    def __init__(self, trace: Trace, names: Names) -> None:
        self.trace = trace
        self.names = names
        self._states: dict[int, State] = {}
        self._met: defaultdict[int, set[int]] = defaultdict(set)  # storage -> tensors met in it so far
        self._parameters: set[int] = set()  # storages
        self._last_use = _last_uses(trace)

    def observe(self, events: Iterable[Event]) -> None:
        """Remember the states that `events` left behind."""
        for event in events:
            if isinstance(event, Call):
                for state in event.states:
                    self._states[state.tensor] = state
                for access in event.inputs + event.outputs:
                    storage = self.storage(access.tensor)
                    if storage is not None:
                        self._met[storage].add(access.tensor)
                        self._parameters |= {storage} if self.is_parameter(access.tensor) else set()

    def state(self, tensor: int) -> State | None:
        return self._states.get(tensor)

    def requires_grad(self, tensor: int) -> bool:
        state = self._states.get(tensor)
        return state is not None and state.requires_grad

    def storage(self, tensor: int) -> int | None:
        """Where the tensor lies now."""
        state = self._states.get(tensor)
        return state.storage if state and state.storage is not None else self.trace.tensors[tensor].storage

    def memory(self, tensor: int) -> int:
        """A number that the tensors in one block of memory share."""
        storage = self.storage(tensor)
        return -1 - tensor if storage is None else storage

    def holds_parameter(self, tensor: int) -> bool:
        """Whether it is a parameter, or lies in the memory of one."""
        return self.is_parameter(tensor) or self.storage(tensor) in self._parameters

    def mark(self, tensor: int) -> str:
        """`#2`, the storage as the reader knows it."""
        return self.names.storage_mark(self.storage(tensor))

    def is_parameter(self, tensor: int) -> bool:
        return self.trace.tensors[tensor].type == "Parameter"

    def is_old_memory(self, tensor: int) -> bool:
        """Whether another tensor lay where this one does before the visit: `out.data.zero_()` writes into `out`."""
        storage = self.trace.tensors[tensor].storage
        met = self._met.get(storage, set()) if storage is not None else set()
        return len(met) > (tensor in met)

    def effects(self, call: Call, named: list[int], written: int) -> tuple[str, ...]:
        """What a write means for the other tensors in that memory, in words."""
        phrases = [self._effect(call, written, other) for other in named[:_LISTED]]
        return (*phrases, f"{len(named) - _LISTED} more in the same memory") if len(named) > _LISTED else tuple(phrases)

    def named_in_memory(self, call: Call, written: int) -> list[int]:
        """The other named tensors in the memory that was written, which are used again or alive at the end."""
        storage = self.storage(written)
        others = sorted(self._met.get(storage, ())) if storage is not None else []
        return [
            other
            for other in others
            if other != written
            and self._last_use.get(other, -1) > call.index
            and self.storage(other) == storage
            and self.names.is_named(other)
        ]

    def _effect(self, call: Call, written: int, other: int) -> str:
        name = self.names.script_name(other) or self.names.display_name(other, call.index)
        same = self.trace.tensors[other].counter == self.trace.tensors[written].counter
        what = "changes too" if self.reaches(written, other, call.op) else "lies in the same memory"
        return f"{name} {what}" + ("" if same else ", its version stays")

    def reaches(self, written: int, other: int, op: str) -> bool:
        """Whether a write to `written` surely changed what `other` sees: no view is between, or all was written."""
        tensors = self.trace.tensors
        if tensors[written].base is None and tensors[other].base is None:
            return tensors[written].shape == tensors[other].shape
        if tensors[written].base == other:
            return True
        return tensors[other].base == written and not op.rpartition(".")[2].startswith(_PARTIAL_WRITES)


def _last_uses(trace: Trace) -> dict[int, int]:
    """The last event that touches each tensor; the end of the run for those alive then."""
    last: dict[int, int] = {}
    for event in trace.events:
        if isinstance(event, Call):
            for access in event.inputs + event.outputs:
                last[access.tensor] = event.index
        elif isinstance(event, Backward):
            last.update({access.tensor: event.index for access in event.roots})
    end = trace.events[-1].index + 1 if trace.events else 0
    return last | {state.tensor: end for state in trace.end.states}
