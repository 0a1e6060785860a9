"""Finds the tensors in values, and walks the modules in a module as `named_modules()` does, without running user code.

A module whose `__init__` raised before it called that of `nn.Module` has no `_modules` yet: it consists of itself.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from types import GetSetDescriptorType, MemberDescriptorType, NoneType
from typing import Any

import torch

from tensorlens.records.limits import LISTED_ITEMS

MAX_ITEMS = LISTED_ITEMS  # of a container or an object
MAX_SEARCHED = 50_000  # items of one search
Parts = Iterable[tuple[str, Any]]  # (step of a path: "[0]" or ".weight", the value that it leads to)
_PLAIN = frozenset((NoneType, bool, int, float, complex, str, bytes))
_BASIC = frozenset("builtins torch numpy types functools collections".split())
_LONG = 200  # characters of a key
_DICTIONARY_OF: Callable[[type], Any] = type.__dict__["__dict__"].__get__
_BASES_OF: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_MODULE_OF: Callable[[type], object] = type.__dict__["__module__"].__get__
_DESCRIPTORS = (GetSetDescriptorType, MemberDescriptorType)


@dataclass(slots=True)
class Limit:
    """Limits a search that runs no code of the program: `each` items of a container, and `left` items in all."""

    each: int = MAX_ITEMS
    left: int = MAX_SEARCHED
    collections: bool = False  # whether to search an `OrderedDict`, as a state dict is, and a `deque`, too

    def items(self, value: object) -> list[tuple[str, Any]] | None:
        """Returns the items of a built-in container that a path can name; None for any other object."""
        kind = type(value)
        if kind is list or kind is tuple or (kind is deque and self.collections):
            found = list(islice(value, self._take(len(value))))  # type: ignore[call-overload, arg-type]
            return [(f"[{position}]", item) for position, item in enumerate(found) if type(item) not in _PLAIN]
        if kind is dict or (kind is OrderedDict and self.collections):
            pairs = list(islice(value.items(), self._take(len(value))))  # type: ignore[attr-defined, arg-type]
            return [(f"[{key!r}]", item) for key, item in pairs if type(item) not in _PLAIN and _is_short(key)]
        return None

    def _take(self, length: int) -> int:
        count = min(length, self.each, self.left)
        self.left -= count
        return count


def _is_short(key: object) -> bool:
    """Returns whether a path can show a key of a dictionary."""
    return (type(key) is str and len(key) <= _LONG) or (type(key) is int and key.bit_length() <= _LONG)


def is_tensor(value: object) -> bool:
    """Returns whether a value is a tensor. `isinstance` would read a `__class__` that the program defines."""
    return issubclass(type(value), torch.Tensor)


def state_of(value: object) -> dict[str, Any]:
    """Returns the `__dict__` of an object, empty if it has none. `vars` would run `__getattribute__` or a property of
    the program."""
    for kind in _BASES_OF(type(value)):
        descriptor = _DICTIONARY_OF(kind).get("__dict__")
        if descriptor is not None:
            state = descriptor.__get__(value) if type(descriptor) in _DESCRIPTORS else None
            return state if type(state) is dict else {}
    return {}


def reachable_tensors(
    value: object,
    depth: int = 3,
    limit: Limit | None = None,
    through_modules: Callable[[str, Any], Iterable[tuple[str, torch.Tensor]]] | None = None,
    attributes_of: Callable[[object], Parts] | None = None,
    path: str = "",
) -> Iterator[tuple[str, torch.Tensor]]:
    """Finds the tensors in a value: the value itself, or those inside containers, at most `depth` of them deep.

    Args:
        value: any object.
        depth: how many containers and objects may lie around a tensor. Modules do not count.
        limit: for a search that runs no code of the program. Without it, all items of lists, tuples and dicts are
            searched, also of subclasses, and their steps are empty.
        through_modules: gives the tensors of a module that is met, and their paths. Without it, modules are skipped.
        attributes_of: gives the parts of any other object. Without it, other objects are skipped.
        path: the path of `value` itself.

    Yields:
        (path, tensor)
    """
    if is_tensor(value):
        yield path, value  # type: ignore[misc]
    elif through_modules is not None and issubclass(type(value), torch.nn.Module):
        yield from through_modules(path, value)
    elif depth and type(value) not in _PLAIN:
        parts: Parts | None = _items(value) if limit is None else limit.items(value)
        if parts is None and attributes_of is not None:
            parts = attributes_of(value)
        for step, item in parts or ():
            yield from reachable_tensors(item, depth - 1, limit, through_modules, attributes_of, path + step)


def _items(value: object) -> Parts | None:
    if isinstance(value, (list, tuple)):
        return [("", item) for item in value]
    return [("", item) for item in value.values()] if isinstance(value, dict) else None


def collect_tensors(value: object, found: list[torch.Tensor], depth: int = 3) -> None:
    """Appends the tensors in a value to `found`, as `reachable_tensors` finds them but at a third of the cost: calls
    on the slow path pay for it."""
    kind = type(value)
    if kind is not tuple and isinstance(value, torch.Tensor):
        found.append(value)
    elif depth and (kind is tuple or isinstance(value, (list, tuple))):
        for item in value:  # type: ignore[attr-defined]
            if type(item) is torch.Tensor:
                found.append(item)
            else:
                collect_tensors(item, found, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            if type(item) not in _PLAIN:
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
        children = state_of(part).get("_modules") or {}
        waiting += [
            (f"{path}.{name}" if path else name, child)
            for name, child in reversed(list(children.items()))
            if child is not None
        ]


def parameters_of(module: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """Returns the registered parameters of a module and of those in it, each once."""
    seen: set[int] = set()
    for _, part in named_parts(module):
        for parameter in (state_of(part).get("_parameters") or {}).values():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield parameter


def own_attributes(is_user: Callable[[str], bool], value: object) -> list[tuple[str, object]]:
    """Returns the attributes of an object: of a library's class, only the public ones; of a basic object, none."""
    kind = type(value)
    if issubclass(kind, type) or _is_basic(kind):
        return []
    attributes = [(name, item) for name, item in islice(state_of(value).items(), MAX_ITEMS) if type(name) is str]
    if _is_users_class(is_user, kind):
        return attributes
    return [(name, item) for name, item in attributes if not name.startswith("_")]


def _is_basic(kind: type) -> bool:
    """Returns whether a class is part of Python, PyTorch or NumPy."""
    return str(_MODULE_OF(kind)).partition(".")[0] in (
        "builtins",
        "torch",
        "numpy",
        "types",
        "functools",
        "collections",
    )


def _is_users_class(is_user: Callable[[str], bool], kind: type) -> bool:
    """Returns whether a class is defined in the program's own files."""
    file = getattr(sys.modules.get(str(_MODULE_OF(kind))), "__file__", None)
    return not isinstance(file, str) or is_user(file)


def module_tensors(path: str, module: object, limit: Limit) -> Iterator[tuple[str, torch.Tensor]]:
    """Returns the parameters, buffers and other tensors of a module and of the modules in it, with their paths.

    Other tensors are attributes, also those in lists, tuples and dicts, as far as the `limit` goes. A module that is in
    itself is read once.
    """
    around: set[int] = set()
    waiting: list[tuple[str, object, bool]] = [(path, module, True)]
    while waiting:
        path, module, enters = waiting.pop()
        if not enters:
            around.discard(id(module))
        elif id(module) not in around:
            around.add(id(module))
            yield from _own_tensors(path, module, limit)
            waiting.append((path, module, False))
            children = list((state_of(module).get("_modules") or {}).items())
            waiting += [(_step(path, name), child, True) for name, child in reversed(children) if child is not None]


def _own_tensors(path: str, module: object, limit: Limit) -> Iterator[tuple[str, torch.Tensor]]:
    state = state_of(module)
    for table in (state.get("_parameters") or {}, state.get("_buffers") or {}):
        for name, tensor in table.items():
            if is_tensor(tensor):
                yield f"{path}.{name}", tensor
    for name, value in list(state.items()):
        kind = type(value)
        if kind in _PLAIN or type(name) is not str:
            continue
        if is_tensor(value):
            yield f"{path}.{name}", value
        elif kind in (list, tuple, dict) and not name.startswith("_"):
            yield from reachable_tensors(value, 2, limit, path=f"{path}.{name}")


def _step(path: str, name: str) -> str:
    return f"{path}[{name}]" if name.isdigit() else f"{path}.{name}"
