"""Reads which whole numbers the function of a `LambdaLR` uses: one may be the number of steps that it is made for."""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType

MOST = 16  # numbers of a scheduler
_LEAST = 2
_MAX_DEPTH = 2  # functions that call each other
_SETS = ("STORE_FAST", "DELETE_FAST", "STORE_DEREF")
_OWN = GetSetDescriptorType | MemberDescriptorType | None  # as Python makes `__dict__`
_UNKNOWN = object()
_classes: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__  # the program may have its own `__mro__`
_namespace: Callable[[type], dict[str, object]] = vars(type)["__dict__"].__get__


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number, the name by which a function reads it, and the code of the function."""

    name: str
    value: int
    code: CodeType


def counts_of(scheduler: object) -> tuple[Count, ...]:
    """Returns the whole numbers that the functions of a scheduler read by name.

    No code of the program runs: only variables, default values and plain attributes are looked at.
    """
    functions = getattr(scheduler, "lr_lambdas", None)
    found: dict[tuple[str, int], Count] = {}
    for function in functions if isinstance(functions, list) else ():
        for name, value, code in _read_by(function):
            if type(value) is int and value >= _LEAST:
                found.setdefault((name, value), Count(name, value, code))
    return tuple(found.values())[:MOST]


def _read_by(function: object) -> Iterator[tuple[str, object, CodeType]]:
    given: dict[str, object] = {}
    while isinstance(function, functools.partial) and not function.args:
        given = function.keywords | given
        function = function.func
    if not isinstance(function, FunctionType | MethodType | functools.partial):
        call = _of_class(type(function), "__call__")
        function = MethodType(call, function) if isinstance(call, FunctionType) else None
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        code = function.__func__.__code__
        given = dict.fromkeys(code.co_varnames[: min(code.co_argcount, 1)], function.__self__) | given
        function = function.__func__
    if isinstance(function, FunctionType):
        yield from _of_function(function, given, _MAX_DEPTH)


def _of_function(
    function: FunctionType, given: dict[str, object], depth: int
) -> Iterator[tuple[str, object, CodeType]]:
    """Yields the names that a function reads, with their values. `given`: the values of some of its arguments."""
    code, value = function.__code__, _UNKNOWN
    arguments = code.co_varnames[: code.co_argcount]
    local = dict(zip(reversed(arguments), reversed(function.__defaults__ or ()), strict=False))
    local |= (function.__kwdefaults__ or {}) | given
    instructions = list(dis.get_instructions(code))
    changed = {name for each in instructions if each.opname.startswith(_SETS) for name in _names(each)}
    cells = {name: _content(cell) for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False)}
    for each in instructions:
        names = _names(each)
        if each.opname.startswith("LOAD_ATTR"):
            value = _attributes(value).get(each.argval, _UNKNOWN)
        elif each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = function.__globals__.get(each.argval, _UNKNOWN)
        elif each.opname == "LOAD_DEREF":
            value = cells.get(each.argval, local.get(each.argval, _UNKNOWN))
        elif each.opname.startswith("LOAD_FAST"):
            yield from ((name, local[name], code) for name in names[:-1] if name in local.keys() - changed)
            value = _UNKNOWN if names[-1] in changed else local.get(names[-1], _UNKNOWN)
        else:
            value = _UNKNOWN
            continue
        yield names[-1], value, code
        if isinstance(value, FunctionType) and depth:
            yield from _of_function(value, {}, depth - 1)


def _names(instruction: dis.Instruction) -> tuple[str, ...]:
    """Returns the names that an instruction is about: one may load two variables."""
    given = instruction.argval
    return given if isinstance(given, tuple) else (given,)


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return _UNKNOWN


def _attributes(value: object) -> dict[str, object]:
    """Returns the attributes that an object itself has, unless its class computes them."""
    own = [_namespace(each).get("__dict__") for each in _classes(type(value))]
    if isinstance(value, ModuleType | type) or not all(isinstance(each, _OWN) for each in own):
        return {}
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _of_class(kind: type, name: str) -> object:
    spaces = (_namespace(each) for each in _classes(kind))
    return next((space[name] for space in spaces if name in space), None)
