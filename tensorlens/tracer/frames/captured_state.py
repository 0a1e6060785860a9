"""Captures the values that a function reads besides its arguments, so that two runs of it can be compared.

A checkpointed function must do the same when backward runs it again. Its code shows what else it can read: globals,
closures, the object of a bound method, the flags of modules. Each value is kept as short text.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FunctionType, MethodType

import torch

from tensorlens.tracer.isolation.module_tree import named_parts

_ATOMS = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
_KEPT = (*_ATOMS, torch.Tensor)
_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_MAX_ITEMS = 32
_MAX_READ = 400
_MAX_TEXT = 40
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """Describes a value at one moment. The code reaches it from the name `root`, last through `attribute`."""

    text: str
    root: str
    attribute: str = ""
    owner: int = 0  # address of the module whose flag it is


class CapturedState:
    """Captures the plain values that a function can read besides its arguments, and the user's code that it reaches."""

    def __init__(self, function: object, is_user: Callable[[str], bool]) -> None:
        self.read: dict[str, Reading] = {}
        self.codes: list[CodeType] = []
        self._is_user = is_user
        self._add_function(function, _DEPTH)

    def differences(self, before: CapturedState) -> Iterator[tuple[str, Reading, Reading]]:
        """Finds (name, before, now) of the values that have changed."""
        for name, reading in self.read.items():
            old = before.read.get(name)
            if old is not None and old.text != reading.text:
                yield name, old, reading

    def _add_function(self, function: object, depth: int) -> None:
        while isinstance(function, functools.partial):
            function = function.func
        if not isinstance(function, FunctionType | MethodType | torch.nn.Module) and callable(function):
            function = function.__call__  # an object of a class of the user's
        if isinstance(function, torch.nn.Module):
            self._add_module(type(function).__name__, function)
            function = type(function).forward
        elif isinstance(function, MethodType):
            self._add_object("self", function.__self__)
            function = function.__func__
        function = getattr(function, "__wrapped__", function)
        if not isinstance(function, FunctionType) or not depth:
            return
        if not self._is_user(function.__code__.co_filename):
            for name, value in _closure(function):  # a library's wrapper around the user's modules
                self._add_value(name, Reading("", name), value, depth - 1)
        elif function.__code__ not in self.codes:
            self.codes.append(function.__code__)
            for name, value in _outer_values(function):
                self._add_value(name, Reading("", name), value, depth - 1)

    def _add_value(self, name: str, place: Reading, value: object, depth: int) -> None:
        if len(self.read) >= _MAX_READ:
            return
        if isinstance(value, _KEPT):
            self.read[name] = Reading(_text(value), place.root, place.attribute)
        elif isinstance(value, torch.nn.Module):
            self._add_module(name, value)
        elif isinstance(value, _CONTAINERS):
            self._add_items(name, place, value)
        elif isinstance(value, FunctionType | MethodType):
            self._add_function(value, depth)
        elif depth == _DEPTH - 1 and hasattr(value, "__dict__") and not isinstance(value, type):
            self._add_object(name, value)

    def _add_items(self, name: str, place: Reading, value: Collection[object]) -> None:
        self.read[f"len({name})"] = Reading(str(len(value)), place.root, place.attribute)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in list(islice(items, _MAX_ITEMS)):
            if isinstance(item, torch.nn.Module):
                self._add_module(f"{name}[{key!r}]", item)
            elif isinstance(item, _ATOMS) and not isinstance(value, set | frozenset):
                self.read[f"{name}[{key!r}]"] = Reading(_text(item), place.root, place.attribute)

    def _add_object(self, name: str, value: object) -> None:
        if isinstance(value, torch.nn.Module):
            self._add_module(name, value)
            return
        self._add_methods(type(value))
        for attribute, item in list(islice(getattr(value, "__dict__", {}).items(), _MAX_ITEMS)):
            if isinstance(item, (*_ATOMS, *_CONTAINERS)) and not attribute.startswith("__"):
                self._add_value(f"{name}.{attribute}", Reading("", name, attribute), item, 0)

    def _add_module(self, name: str, module: torch.nn.Module) -> None:
        for path, part in named_parts(module):
            for attribute, item in list(vars(part).items()):
                if len(self.read) >= _MAX_READ or attribute.startswith("_"):
                    continue
                full = ".".join(filter(None, (name, path, attribute)))
                if isinstance(item, _KEPT):
                    self.read[full] = Reading(_text(item), name, attribute, id(part))
                elif isinstance(item, _CONTAINERS):
                    self._add_methods(type(part))
                    self._add_items(full, Reading("", name, attribute), item)
                elif not isinstance(item, torch.nn.Module) and self._methods(type(item)):
                    self._add_object(full, item)

    def _add_methods(self, kind: type) -> None:
        """Adds the code of a user's class, which may change the attributes of its objects."""
        self.codes += [code for code in self._methods(kind) if code not in self.codes]

    def _methods(self, kind: type) -> list[CodeType]:
        """Returns the methods of a user's class that may run between the two runs; none for a library's class."""
        methods = {name: value for name, value in vars(kind).items() if isinstance(value, FunctionType)}
        codes = [value.__code__ for name, value in methods.items() if name != "__init__"]
        return [code for code in codes if self._is_user(code.co_filename)]


def _text(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)}, {value.dtype}"
    return repr(value)[:_MAX_TEXT]


def _outer_values(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Finds the globals and outer variables that a function's code names."""
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]
    yield from _closure(function)


def _closure(function: FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue
