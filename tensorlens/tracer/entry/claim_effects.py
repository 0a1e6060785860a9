"""Compares a script's names and tensors before and after the check of a claim, which must not change them."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from tensorlens.tracer.isolation.readable import may_read

_COMPARED = 4096  # elements of a tensor whose values are compared too: a write through `.data` leaves the version alone
_MOST = 1000  # tensors
_SHOWN = 4


class Snapshot:
    """Copies the names that a frame sees, and the state of the tensors that they reach."""

    def __init__(self, frame: types.FrameType) -> None:
        self._names = _names(frame)
        self._tensors: dict[str, tuple[torch.Tensor, dict[str, Any]]] = {}
        self._contents: dict[str, list[Any]] = {}
        met: set[int] = set()  # by `id`: all that is met here stays alive
        with _unseen():
            for path, value in _below(self._names):
                if isinstance(value, torch.Tensor):
                    if len(self._tensors) < _MOST and id(value) not in met:
                        met.add(id(value))
                        self._tensors[path] = value, _state(value)
                else:
                    self._contents[path] = _members(value)

    def changes(self, frame: types.FrameType) -> str:
        """Says in words what has changed since: `sets a.grad, writes w`. "" if nothing has."""
        found = [*self._changed_names(_names(frame))]
        with _unseen():
            for path, (tensor, before) in self._tensors.items():
                found += _differences(path, before, _state(tensor))
            for path, value in _below(self._names):
                if path in self._contents and not _same(self._contents[path], _members(value)):
                    found.append(f"changes {path}")
        rest = len(found) - _SHOWN
        return ", ".join(found[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")

    def _changed_names(self, after: Mapping[str, Any]) -> Iterator[str]:
        before = self._names
        yield from (f"makes the name {name}" for name in after.keys() - before.keys())
        yield from (f"deletes the name {name}" for name in before.keys() - after.keys())
        yield from (f"rebinds {name}" for name in before.keys() & after.keys() if before[name] is not after[name])


def _names(frame: types.FrameType) -> dict[str, Any]:
    names = {**frame.f_globals, **frame.f_locals}
    return {name: value for name, value in names.items() if not name.startswith("__")}


def _below(names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Finds (path, value) of each tensor and container that has a name, or is in a named container or module."""
    for name, value in names.items():
        yield from _inside(name, value)
        if isinstance(value, list | tuple | dict) and len(value) <= _MOST:
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, item in list(items):
                yield from _inside(f"{name}[{key!r:.40}]", item)


def _inside(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor) or type(value) in (list, dict, set):
        yield path, value
    elif isinstance(value, torch.nn.Module):
        held = [*torch.nn.Module.named_parameters(value), *torch.nn.Module.named_buffers(value)]
        yield from ((f"{path}.{inner}", tensor) for inner, tensor in held)


def _members(value: Any) -> list[Any]:
    return [*value.keys(), *value.values()] if isinstance(value, dict) else list(value)


def _same(before: list[Any], after: list[Any]) -> bool:
    return len(before) == len(after) and all(map(lambda one, other: one is other, before, after))


def _state(tensor: torch.Tensor) -> dict[str, Any]:
    kept = tensor.is_leaf or tensor.retains_grad  # reading the `.grad` of others warns
    grad = tensor.grad if kept else None
    return {
        "requires_grad": tensor.requires_grad,
        "retains_grad": tensor.retains_grad,
        "place": tensor.data_ptr() if not tensor.is_meta and tensor.layout is torch.strided else 0,
        "written": (None if tensor.is_inference() else tensor._version, _values(tensor)),
        "grad": grad,
        "gradient": None if grad is None else (grad._version, _values(grad)),
    }


def _values(tensor: torch.Tensor) -> bytes | None:
    """Returns the bytes of a small tensor in main memory."""
    if tensor.numel() > _COMPARED or not may_read(tensor):
        return None
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().flatten()
    return bytes(flat.view(torch.uint8).tolist()) if flat.numel() else b""


def _differences(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if before["grad"] is not after["grad"]:
        yield f"{'sets' if before['grad'] is None else 'replaces'} {path}.grad"
    elif before["gradient"] != after["gradient"]:
        yield f"adds to {path}.grad"
    if before["written"] != after["written"] or before["place"] != after["place"]:
        yield f"writes {path}"
    for name in ("requires_grad", "retains_grad"):
        if before[name] != after[name]:
            yield f"sets {name} of {path} to {after[name]}"


@contextmanager
def _unseen() -> Iterator[None]:
    """Hides what is read here from the modes that the script has entered."""
    with ExitStack() as stack:
        stack.enter_context(torch._C.DisableTorchFunction())
        stack.enter_context(_disable_current_modes())
        yield
