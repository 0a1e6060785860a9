"""What is left when a run ends: the tensors that are alive, and the names that reach them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import torch

from tensorlens.journal import END
from tensorlens.tracer.recorder import Recorder
from tensorlens.tracer.texts import short_text

MAX_STATES = 2_000
MAX_ITEMS = 16
_DEPTH = 3


def write_end(recorder: Recorder, namespace: dict[str, Any], traceback: TracebackType | None) -> None:
    """Write the END row: names first, so that named tensors are among those whose state is kept."""
    with torch._C.DisableTorchFunction():
        bindings = _bindings(recorder, namespace, traceback)
        named = {tensor for _, tensor, _ in bindings}
        live = recorder.identity.live()
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
                    number = recorder.identity.of(tensor)
                    if number is None:
                        number = recorder.identity.meet(tensor)
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
        for name, item in own_attributes(recorder, value):
            yield from _tensors(recorder, f"{path}.{name}", item, depth - 1)


def own_attributes(recorder: Recorder, value: Any) -> list[tuple[str, Any]]:
    """The attributes of an object; of one of a library's class those that are not private to it."""
    kind = type(value)
    if isinstance(value, type) or _is_basic(kind) or "__dict__" not in dir(kind):
        return []
    held = list(vars(value).items())[:MAX_ITEMS]
    if _is_users(recorder, kind):
        return held
    return [(name, item) for name, item in held if not name.startswith("_")]


def _is_basic(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("builtins", "torch", "numpy", "types", "functools", "collections")


def _is_users(recorder: Recorder, kind: type) -> bool:
    """Whether a class is defined in the program's own files."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return not isinstance(file, str) or recorder.sites.is_user(file)


def module_tensors(path: str, module: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[str, torch.Tensor]]:
    """The parameters, buffers and other tensors of a module and of the modules in it, by their paths."""
    state = vars(module)
    for table in (state.get("_parameters") or {}, state.get("_buffers") or {}):
        for name, tensor in table.items():
            if isinstance(tensor, torch.Tensor):
                yield f"{path}.{name}", tensor
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            yield f"{path}.{name}", value
    for name, child in (state.get("_modules") or {}).items():
        if child is not None and all(child is not outer for outer in (module, *above)):
            dotted = f"{path}[{name}]" if name.isdigit() else f"{path}.{name}"
            yield from module_tensors(dotted, child, (module, *above))
