"""Finds the tensors in values, and walks the modules in a module as `named_modules()` does, without running user code.

A module whose `__init__` raised before it called that of `nn.Module` has no `_modules` yet: it consists of itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from tensorlens.records.model import LISTED_ITEMS

MAX_ITEMS = LISTED_ITEMS  # of a container or an object
Parts = Iterable[tuple[str, Any]]  # (step of a path: "[0]" or ".weight", the value that it leads to)


def container_items(value: object, limit: int | None = None) -> Parts | None:
    """Returns the items of a list, tuple or dict, each with its step of a path; None for any other object.

    With a `limit`, reads at most so many items and only built-in containers with plain keys, so that no code of the
    program runs. Without one, reads subclasses too and leaves the steps empty.
    """
    if limit is None:
        if isinstance(value, (list, tuple)):
            return [("", item) for item in value]
        return [("", item) for item in value.values()] if isinstance(value, dict) else None
    if type(value) in (list, tuple):
        return [(f"[{position}]", item) for position, item in enumerate(value[:limit])]  # type: ignore[index]
    if type(value) is dict:
        return [(f"[{key!r}]", item) for key, item in list(value.items())[:limit] if type(key) in (str, int)]
    return None


def reachable_tensors(
    value: object,
    depth: int = 3,
    limit: int | None = None,
    through_modules: Callable[[str, Any], Iterable[tuple[str, torch.Tensor]]] | None = None,
    attributes_of: Callable[[object], Parts] | None = None,
    path: str = "",
) -> Iterator[tuple[str, torch.Tensor]]:
    """Finds the tensors in a value: the value itself, or those inside containers, at most `depth` of them deep.

    Args:
        value: any object.
        depth: how many containers and objects may lie around a tensor. Modules do not count.
        limit: see `container_items`.
        through_modules: gives the tensors of a module that is met, and their paths. Without it, modules are skipped.
        attributes_of: gives the parts of any other object. Without it, other objects are skipped.
        path: the path of `value` itself.

    Yields:
        (path, tensor)
    """
    if isinstance(value, torch.Tensor):
        yield path, value
    elif through_modules is not None and isinstance(value, torch.nn.Module):
        yield from through_modules(path, value)
    elif depth:
        parts = container_items(value, limit)
        if parts is None and attributes_of is not None:
            parts = attributes_of(value)
        for step, item in parts or ():
            yield from reachable_tensors(item, depth - 1, limit, through_modules, attributes_of, path + step)


def collect_tensors(value: object, found: list[torch.Tensor], depth: int = 3) -> None:
    """Appends the tensors in a value to `found`, as `reachable_tensors` finds them but at a third of the cost: calls
    on the slow path pay for it."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif depth and isinstance(value, (list, tuple)):
        for item in value:
            collect_tensors(item, found, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            collect_tensors(item, found, depth - 1)


def named_parts(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """Returns (path, module) of a module and of those registered in it, each once."""
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
    """Returns the registered parameters of a module and of those in it, each once."""
    seen: set[int] = set()
    for _, part in named_parts(module):
        for parameter in (vars(part).get("_parameters") or {}).values():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield parameter


def own_attributes(is_user: Callable[[str], bool], value: object) -> list[tuple[str, object]]:
    """Returns the attributes of an object: of a library's class, only the public ones; of a basic object, none."""
    kind = type(value)
    if isinstance(value, type) or _is_basic(kind) or "__dict__" not in dir(kind):
        return []
    attributes = list(vars(value).items())[:MAX_ITEMS]
    if _is_users_class(is_user, kind):
        return attributes
    return [(name, item) for name, item in attributes if not name.startswith("_")]


def _is_basic(kind: type) -> bool:
    """Returns whether a class is part of Python, PyTorch or NumPy."""
    return kind.__module__.partition(".")[0] in ("builtins", "torch", "numpy", "types", "functools", "collections")


def _is_users_class(is_user: Callable[[str], bool], kind: type) -> bool:
    """Returns whether a class is defined in the program's own files."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return not isinstance(file, str) or is_user(file)


def module_tensors(path: str, module: object) -> Iterator[tuple[str, torch.Tensor]]:
    """Returns the parameters, buffers and other tensors of a module and of the modules in it, with their paths.

    Other tensors are attributes, also those in lists, tuples and dicts. A module that is in itself is read once.
    """
    around: set[int] = set()
    waiting: list[tuple[str, object, bool]] = [(path, module, True)]
    while waiting:
        path, module, enters = waiting.pop()
        if not enters:
            around.discard(id(module))
        elif id(module) not in around:
            around.add(id(module))
            yield from _own_tensors(path, module)
            waiting.append((path, module, False))
            children = (vars(module).get("_modules") or {}).items()
            waiting += [(_step(path, name), child, True) for name, child in reversed(children) if child is not None]


def _own_tensors(path: str, module: object) -> Iterator[tuple[str, torch.Tensor]]:
    state = vars(module)
    for table in (state.get("_parameters") or {}, state.get("_buffers") or {}):
        for name, tensor in table.items():
            if isinstance(tensor, torch.Tensor):
                yield f"{path}.{name}", tensor
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            yield f"{path}.{name}", value
        elif type(value) in (list, tuple, dict) and not name.startswith("_"):
            yield from reachable_tensors(value, 2, MAX_ITEMS, path=f"{path}.{name}")


def _step(path: str, name: str) -> str:
    return f"{path}[{name}]" if name.isdigit() else f"{path}.{name}"
