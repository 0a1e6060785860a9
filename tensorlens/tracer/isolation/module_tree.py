"""Walks the modules in a module as `named_modules()` does, and runs no line of the program's code meanwhile.

A module whose `__init__` raised before it called that of `nn.Module` has no `_modules` yet: it consists of itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

MAX_ITEMS = 16  # of a container or an object


def named_parts(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """(path, module) of a module and of those in it, each once."""
    seen: set[int] = set()
    waiting = [("", module)]
    while waiting:
        path, part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield path, part
        children = vars(part).get("_modules") or {}
        waiting += [
            (f"{path}.{name}" if path else name, child)
            for name, child in reversed(list(children.items()))
            if child is not None
        ]


def parameters_of(module: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """The registered parameters of a module and of those in it, each once."""
    seen: set[int] = set()
    for _, part in named_parts(module):
        for parameter in (vars(part).get("_parameters") or {}).values():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield parameter


def own_attributes(is_user: Callable[[str], bool], value: Any) -> list[tuple[str, Any]]:
    """The attributes of an object; of one of a library's class those that are not private to it."""
    kind = type(value)
    if isinstance(value, type) or _is_basic(kind) or "__dict__" not in dir(kind):
        return []
    held = list(vars(value).items())[:MAX_ITEMS]
    if _is_users(is_user, kind):
        return held
    return [(name, item) for name, item in held if not name.startswith("_")]


def _is_basic(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("builtins", "torch", "numpy", "types", "functools", "collections")


def _is_users(is_user: Callable[[str], bool], kind: type) -> bool:
    """Whether a class is defined in the program's own files."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return not isinstance(file, str) or is_user(file)


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
