"""Numbers the storages of named tensors, and finds the tensors that were a `.grad`."""

from __future__ import annotations

from tensorlens.records.model import Access, Backward, Call, Event, Trace


def owners_of_gradients(trace: Trace) -> dict[int, int]:
    """Maps each tensor that a backward pass put into `x.grad` to `x`."""
    owners: dict[int, int] = {}
    for event in trace.events:
        if isinstance(event, Backward):
            owners.update({gradient.held: gradient.tensor for gradient in event.gradients if gradient.held is not None})
    return owners


def _accesses(event: Event) -> tuple[Access, ...]:
    if isinstance(event, Call):
        return event.inputs + event.outputs
    return event.roots if isinstance(event, Backward) else ()


def storage_numbers(trace: Trace, chosen: set[int]) -> dict[int, int]:
    """Numbers storages from 1 in the order in which the run met the `chosen` tensors in them."""
    numbers: dict[int, int] = {}

    def add(storage: int | None) -> None:
        if storage is not None and storage not in numbers:
            numbers[storage] = len(numbers) + 1

    for event in trace.events:
        for access in _accesses(event):
            if access.tensor in chosen:
                add(trace.tensors[access.tensor].storage)
        for state in event.states if isinstance(event, Call) else ():
            if state.tensor in chosen:
                add(state.storage)
    for state in trace.end.states:
        if state.tensor in chosen:
            add(state.storage if state.storage is not None else trace.tensors[state.tensor].storage)
    return numbers
