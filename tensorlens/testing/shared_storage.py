"""Finds tensors of two objects that share storage, and the line from which they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.diagnostics.why.subject import Subject
from tensorlens.records.model import Trace

if TYPE_CHECKING:
    from tensorlens.testing.item_recording import ItemRecording

Named = tuple[str, torch.Tensor]


def shared_pairs(one: object, other: object, recording: ItemRecording, trace: Trace) -> list[str]:
    """Returns a text for each tensor of `other` that shares storage with one of `one`."""
    facts = TraceIndex(trace)
    with recording.recorder.quiet():
        by_memory: dict[object, list[Named]] = {}
        for name, tensor in _tensors(one, "", set()):
            by_memory.setdefault(_memory(tensor), []).append((name, tensor))
        found = []
        for name, tensor in _tensors(other, "", set()):
            for known, same in by_memory.get(_memory(tensor), []):
                if _memory(tensor) is not None and _overlap(same, tensor):
                    found.append(_text(facts, recording, (known, same), (name, tensor)))
                    break
    return found


def _tensors(value: object, path: str, seen: set[int]) -> Iterator[Named]:
    """Yields the tensors of a value, each with its path: "layers.0.weight"."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, torch.nn.Module):
        named = {**dict(value.named_parameters()), **dict(value.named_buffers())}
        for name, tensor in named.items():
            yield from _tensors(tensor, _joined(path, name), seen)
    elif isinstance(value, torch.optim.Optimizer):
        for number, group in enumerate(value.param_groups):
            yield from _tensors(group["params"], _joined(path, f"param_groups[{number}]['params']"), seen)
        for number, state in enumerate(value.state.values()):
            yield from _tensors(state, _joined(path, f"state[{number}]"), seen)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _tensors(item, f"{path}[{key!r}]", seen)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _tensors(item, f"{path}[{number}]", seen)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _memory(tensor: torch.Tensor) -> object:
    """Returns what two tensors with the same storage have in common; None if a tensor has no memory."""
    try:
        storage = tensor.untyped_storage()
        return (tensor.device, storage.data_ptr()) if storage.nbytes() and storage.data_ptr() else None
    except (RuntimeError, NotImplementedError):  # sparse tensors and wrappers have no storage
        return None


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns whether the memory from the first to the last element of two tensors overlaps."""
    (first, end), (start, last) = _range(one), _range(other)
    return first < last and start < end


def _range(tensor: torch.Tensor) -> tuple[int, int]:
    first = int(tensor.storage_offset()) * tensor.element_size()
    if not tensor.numel():
        return first, first
    reach = sum(int(size - 1) * int(stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return first, first + (reach + 1) * tensor.element_size()


def _text(facts: TraceIndex, recording: ItemRecording, one: Named, other: Named) -> str:
    (name, first), (other_name, second) = one, other
    numbers = [_number(recording, first), _number(recording, second)]
    called = [f"`{path}` of the {which}" for path, which in ((name, "first"), (other_name, "second"))]
    names = [
        text if path else f"the {which}" if number is None else facts.names.quoted(number)
        for text, path, number, which in zip(called, (name, other_name), numbers, ("first", "second"), strict=True)
    ]
    if first is second:
        return f"{names[0]} and {names[1]} are one tensor"
    where = _since(facts, [number for number in numbers if number is not None])
    return f"{names[0]} and {names[1]} share storage{where}"


def _number(recording: ItemRecording, tensor: torch.Tensor) -> int | None:
    raw = recording.recorder.tensor_ids.find(tensor)
    return None if raw is None else recording.reader.tensor_numbers.get(raw)


def _since(facts: TraceIndex, numbers: list[int]) -> str:
    """Returns the last call that gave one of the tensors its memory, if both are recorded."""
    if len(numbers) < 2:
        return ""
    calls = [call for call in map(facts.creator, numbers) if call is not None]
    calls += [
        call
        for call in facts.calls
        if call.op == DATA_SET and call.inputs and call.inputs[0].tensor in numbers and not call.within
    ]
    if not calls:
        return ""
    last = max(calls, key=lambda call: call.index)
    return f", since {Subject(facts, numbers[0], '').by(last)}"
