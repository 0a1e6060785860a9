"""Finds the user's functions that autograd calls back: where each is defined, and where it returns its value.

A hook may be a `partial`, a bound method or a decorated function. The code that the user wrote is found inside without
running any of it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.journal.rows import NONE, FunctionRow, optional
from tensorlens.tracer.frames import bytecode
from tensorlens.tracer.frames.call_sites import Sites
from tensorlens.tracer.isolation.stack_room import is_short

MAX_LAYERS = 8
ANY_NUMBER = -1


@dataclass(frozen=True, slots=True)
class Function:
    """A user function: its number in the trace, and its code, the outermost decorator first."""

    number: int
    layers: tuple[CodeType, ...]
    returns: tuple[tuple[CodeType, int], ...]  # (code, offset) of every instruction that returns a value


class UserFunctions:
    """Numbers the user functions. `rows` receives a FUNCTION row for each new one."""

    def __init__(self, rows: RowBuffer, sites: Sites) -> None:
        self._rows = rows
        self._sites = sites
        self._known: dict[tuple[str, tuple[CodeType, ...]], Function] = {}  # by file, too: see `Sites`
        self._of_libraries: dict[str, Function] = {}
        self._count = 0

    def find(self, called: object) -> Function | None:
        """Returns the user function behind a callable; None if it contains no user code."""
        layers = tuple(code for code in _layers(called) if self._sites.is_user(code.co_filename))
        if not layers:
            return None
        return self._known.get((layers[-1].co_filename, layers)) or self._new(called, layers)

    def of_library(self, called: object) -> Function:
        """Returns the number of a library's callable that the user's line passed to autograd: `torch.sum`."""
        name = getattr(called, "__name__", None) or type(called).__name__
        known = self._of_libraries.get(name)
        if known is None:
            known = self._of_libraries[name] = Function(self._count, (), ())
            self._add(name, NONE, (), (0, ANY_NUMBER))
        return known

    def of_class(self, kind: type) -> int | None:
        """Returns the number of a user's class, written as a function of its name; None for a library's class."""
        own = [code for value in vars(kind).values() for code in _layers(value)]
        codes = tuple(code for code in own if self._sites.is_user(code.co_filename))
        if not codes:
            return None
        key = codes[0].co_filename, (*codes, _CLASS)
        known = self._known.get(key)
        if known is None:
            site = self._sites.class_above(codes[0], kind.__name__)
            known = self._known[key] = Function(self._count, (), ())
            self._add(kind.__name__, site, (), (0, ANY_NUMBER))
        return known.number

    def site(self, returned: tuple[CodeType, int] | None) -> int:
        """Returns the site of an instruction that returns a value."""
        return NONE if returned is None else self._sites.returning(*returned)

    def _new(self, called: object, layers: tuple[CodeType, ...]) -> Function:
        inner = layers[-1]
        returns = tuple((code, offset) for code in layers for offset in bytecode.returns(code))
        known = self._known[inner.co_filename, layers] = Function(self._count, layers, returns)
        sites = tuple(self.site((code, offset)) for code, offset in returns if code is inner)
        name = inner.co_qualname.rpartition("<locals>.")[2]
        self._add(name, self._sites.definition(inner), sites, _accepts(called))
        return known

    def _add(self, name: str, defined: int, returns: tuple[int, ...], accepts: tuple[int, int]) -> None:
        least, most = accepts
        self._rows.write(FunctionRow, self._count, name, optional(defined), returns, least, optional(most))
        self._count += 1


_CLASS = compile("", "<class>", "exec")  # distinguishes the key of a class from that of its only method


def _layers(called: Any) -> Iterator[CodeType]:
    """Finds the code objects that a call runs, from the outside in: through partials, methods and decorators."""
    for _ in range(MAX_LAYERS):
        if isinstance(called, functools.partial):
            called = called.func
        elif isinstance(called, MethodType | staticmethod | classmethod):
            called = called.__func__
        elif isinstance(called, FunctionType):
            yield called.__code__
            called = called.__dict__.get("__wrapped__")
        elif called is None or isinstance(called, type):
            return
        else:
            inner = getattr(called, "__dict__", {}).get("__wrapped__")
            called = getattr(type(called), "__call__", None) if inner is None else inner  # noqa: B004


def _accepts(called: Any) -> tuple[int, int]:
    """Returns how many positional arguments a callable takes, at least and at most (`ANY_NUMBER`: no limit)."""
    bound, named = 0, 0
    for _ in range(MAX_LAYERS):
        if isinstance(called, functools.partial):
            bound += len(called.args)
            named += len(called.keywords)
            called = called.func
        elif isinstance(called, MethodType):
            bound += 1
            called = called.__func__
        elif isinstance(called, staticmethod):
            called = called.__func__
        elif isinstance(called, FunctionType):
            code = called.__code__
            most = ANY_NUMBER if code.co_flags & 0x04 else max(code.co_argcount - bound - named, 0)
            return max(code.co_argcount - len(called.__defaults__ or ()) - bound - named, 0), most
        else:
            called = getattr(type(called), "__call__", None)  # noqa: B004
            bound += 1
    return 0, ANY_NUMBER


class ReturnWatch:
    """Finds out which instruction of a function returned its result.

    If the code has several, a profile function watches them from `begin` to `end`, unless the program has set one.
    """

    __slots__ = ("_function", "_profile", "_seen")

    def __init__(self, function: Function) -> None:
        self._function = function
        self._seen: dict[CodeType, tuple[int, object]] = {}
        self._profile: Callable[..., None] | None = None

    def begin(self) -> None:
        """Starts watching."""
        if len(self._function.returns) < 2 or sys.getprofile() is not None or is_short():
            return
        layers, seen = self._function.layers, self._seen

        def profile(frame: FrameType, event: str, value: object) -> None:
            if event == "return" and frame.f_code in layers:
                seen[frame.f_code] = (frame.f_lasti, value)

        self._profile = profile
        sys.setprofile(profile)

    def end(self) -> None:
        """Stops watching."""
        if self._profile is not None and sys.getprofile() is self._profile:  # the program may have set its own
            sys.setprofile(None)

    def place(self, result: object) -> tuple[CodeType, int] | None:
        """Returns (code, offset) of the instruction that returned `result`, if it is known."""
        if self._profile is None:
            return self._function.returns[0] if len(self._function.returns) == 1 else None
        for code in reversed(self._function.layers):  # the innermost that returned this object
            if code in self._seen and self._seen[code][1] is result:
                return code, self._seen[code][0]
        return None
