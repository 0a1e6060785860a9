"""What is left when a run ends: the tensors that are alive, and the names that reach them."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

import torch

from tensorlens.journal.rows import END
from tensorlens.tracer.isolation.module_tree import MAX_ITEMS, module_tensors, own_attributes
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.tensor_text import short_text

MAX_STATES = 2_000
_DEPTH = 3


def write_end(recorder: Recorder, namespace: dict[str, Any], traceback: TracebackType | None) -> None:
    """Write the END row: names first, so that named tensors are among those whose state is kept."""
    with torch._C.DisableTorchFunction():
        bindings = _bindings(recorder, namespace, traceback)
        named = {tensor for _, tensor, _ in bindings}
        live = recorder.tensor_ids.live()
        live.sort(key=lambda pair: (pair[0] not in named, pair[0]))
        states = tuple((*recorder.state_at_end(t), _grad_text(t)) for _, t in live[:MAX_STATES])
        recorder.rows.append((END, states, tuple(bindings)))


def _grad_text(tensor: torch.Tensor) -> str | None:
    """Short text of `.grad` where autograd keeps one; asking a tensor that keeps none would warn."""
    try:
        keeps = tensor.is_leaf or tensor.retains_grad
    except RuntimeError:
        return None
    return short_text(tensor.grad) if keeps and tensor.grad is not None else None


def _bindings(
    recorder: Recorder, namespace: dict[str, Any], traceback: TracebackType | None
) -> list[tuple[str, int, str]]:
    found: dict[tuple[str, str], int] = {}
    scopes: list[tuple[str, dict[str, Any]]] = [("<module>", namespace)]
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if recorder.sites.is_user(code.co_filename) and code.co_name != "<module>":
            scopes.append((code.co_qualname, traceback.tb_frame.f_locals))
        traceback = traceback.tb_next
    for scope, names in scopes:
        for name, value in list(names.items()):
            if not name.startswith("__"):
                for path, tensor in _tensors(recorder, name, value, _DEPTH):
                    number = recorder.tensor_ids.find(tensor)
                    if number is None:
                        number = recorder.tensor_ids.id_of(tensor)
                    found.setdefault((path, scope), number)
    return [(path, number, scope) for (path, scope), number in found.items()]


def _tensors(recorder: Recorder, path: str, value: Any, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that a name reaches, without running a line of the user's code."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        yield path, value
    elif not depth:
        return
    elif issubclass(kind, torch.nn.Module):
        yield from module_tensors(path, value)
    elif kind in (list, tuple):
        for position, item in enumerate(value[:MAX_ITEMS]):
            yield from _tensors(recorder, f"{path}[{position}]", item, depth - 1)
    elif kind is dict:
        for key, item in list(value.items())[:MAX_ITEMS]:
            if type(key) in (str, int):
                yield from _tensors(recorder, f"{path}[{key!r}]", item, depth - 1)
    else:
        for name, item in own_attributes(recorder.sites.is_user, value):
            yield from _tensors(recorder, f"{path}.{name}", item, depth - 1)
