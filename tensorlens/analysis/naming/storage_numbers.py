"""Numbers the storages that named tensors lie in, and finds whose `.grad` a tensor was."""

from __future__ import annotations

from tensorlens.records.model import Access, Backward, Call, Event, Trace


def owners_of_gradients(trace: Trace) -> dict[int, int]:
    """The tensors that were a `.grad` -> whose."""
    found: dict[int, int] = {}
    for event in trace.events:
        if isinstance(event, Backward):
            found.update({gradient.held: gradient.tensor for gradient in event.gradients if gradient.held is not None})
    return found


def _touched(event: Event) -> tuple[Access, ...]:
    if isinstance(event, Call):
        return event.inputs + event.outputs
    return event.roots if isinstance(event, Backward) else ()


def storage_numbers(trace: Trace, chosen: set[int]) -> dict[int, int]:
    """Storages numbered from 1 in the order in which the chosen tensors were met in them."""
    numbers: dict[int, int] = {}

    def meet(storage: int | None) -> None:
        if storage is not None:
            numbers.setdefault(storage, len(numbers) + 1)

    for event in trace.events:
        for access in _touched(event):
            if access.tensor in chosen:
                meet(trace.tensors[access.tensor].storage)
        for state in event.states if isinstance(event, Call) else ():
            if state.tensor in chosen:
                meet(state.storage)
    for state in trace.end.states:
        if state.tensor in chosen:
            meet(state.storage if state.storage is not None else trace.tensors[state.tensor].storage)
    return numbers
