"""Reads which whole numbers the function of a `LambdaLR` uses: one may be the number of steps that it is made for."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import CellType, FunctionType, ModuleType

MOST = 16  # numbers of a scheduler
_LEAST = 2
_MAX_DEPTH = 2  # functions that call each other


def counts_of(scheduler: object) -> tuple[tuple[str, int], ...]:
    """Returns the whole numbers that the functions of a scheduler read by name, each with the name.

    No code of the program runs: only variables, default values and plain attributes are looked at.
    """
    functions = getattr(scheduler, "lr_lambdas", None)
    found: dict[str, int] = {}
    for function in functions if isinstance(functions, list) else ():
        for name, value in _read_by(function, _MAX_DEPTH):
            if type(value) is int and value >= _LEAST:
                found.setdefault(name, value)
    return tuple(found.items())[:MOST]


def _read_by(function: object, depth: int) -> Iterator[tuple[str, object]]:
    if isinstance(function, functools.partial):
        yield from function.keywords.items()
        yield from _read_by(function.func, depth)
    elif isinstance(function, FunctionType):
        yield from _of_function(function, depth)
    else:
        yield from _attributes(function).items()


def _of_function(function: FunctionType, depth: int) -> Iterator[tuple[str, object]]:
    code = function.__code__
    arguments = code.co_varnames[: code.co_argcount]
    yield from zip(reversed(arguments), reversed(function.__defaults__ or ()), strict=False)
    values = [(name, _content(cell)) for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False)]
    values += [(name, function.__globals__[name]) for name in code.co_names if name in function.__globals__]
    for name, value in values:
        yield name, value
        if isinstance(value, FunctionType) and depth:
            yield from _of_function(value, depth - 1)
        elif not isinstance(value, ModuleType | type):
            own = _attributes(value)
            yield from ((each, own[each]) for each in code.co_names if each in own)


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return None


def _attributes(value: object) -> dict[str, object]:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}
