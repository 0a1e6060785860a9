"""Reads from bytecode what the value of an instruction is stored to: names, attributes, items, nested and starred."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

_FILLERS = {"CACHE", "NOP", "PRECALL", "EXTENDED_ARG", "COPY", "RESUME", "NOT_TAKEN"}
_BY_NAME = {"STORE_NAME", "STORE_GLOBAL", "LOAD_NAME"}
_ATTRIBUTE_FLAG = sys.version_info >= (3, 12)  # the lowest bit of LOAD_ATTR's argument says that a method is loaded
STARRED = "*"  # before the name of a list that takes the values which the other names leave


def targets_of(code: CodeType, offset: int) -> tuple[str, ...]:
    """The names that take the value of the instruction at `offset`, if the next thing done is to store it: those of
    nested targets one after another, `*rest` for a starred one, `self.a` and `xs[0]` for attributes and items."""
    return tuple(_Reading(code, offset).target() or ())


class _Reading:
    """The instructions from an offset on, read one by one: taking all of a long function apart costs half a
    millisecond."""

    def __init__(self, code: CodeType, offset: int) -> None:
        self._code = code
        self._steps = _steps(code, offset)
        self._name, self._argument = next(self._steps, ("", 0))

    def _go_on(self) -> None:
        self._name, self._argument = next(self._steps, ("", 0))

    def target(self) -> list[str] | None:
        """One target, whatever it holds; None for what is no target."""
        name, argument = self._name, self._argument
        if name in ("UNPACK_SEQUENCE", "UNPACK_EX"):
            self._go_on()
            return self._unpacked(argument & 255, argument >> 8, name == "UNPACK_EX")
        if name in ("STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST"):  # two in one, from Python 3.13 on
            following = name.removeprefix("STORE_FAST_")
            self._name, self._argument = following, argument & 15
            return [self._local(argument >> 4)]
        if name.startswith("STORE_") and (stored := self._variable(name, argument)) is not None:
            self._go_on()
            return [stored]
        return self._place()

    def _unpacked(self, before: int, after: int, starred: bool) -> list[str] | None:
        found: list[str] = []
        for position in range(before + starred + after):
            part = self.target()
            if part is None:
                return None
            found += [STARRED + part[0]] if starred and position == before and len(part) == 1 else part
        return found

    def _place(self) -> list[str] | None:
        """`self.a`, `xs[0]`: a name is loaded, then an attribute or item of it is set."""
        path = self._loaded()
        if path is None:
            return None
        while self._name == "LOAD_ATTR":
            path.append(f"{path.pop()}.{self._code.co_names[self._argument >> _ATTRIBUTE_FLAG]}")
            self._go_on()
        if self._name == "STORE_ATTR":
            whole = f"{path.pop()}.{self._code.co_names[self._argument]}"
        elif len(path) == 1 and (index := self._index()) is not None and self._name == "STORE_SUBSCR":
            whole = f"{path.pop()}[{index}]"
        elif len(path) == 2 and self._name == "STORE_SUBSCR":
            index, whole = path.pop(), path.pop()
            whole = f"{whole}[{index}]"
        else:
            return None
        self._go_on()
        return [whole] if not path else None

    def _loaded(self) -> list[str] | None:
        """The names that the next instruction loads."""
        name, argument = self._name, self._argument
        if name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
            self._go_on()
            return [self._local(argument >> 4), self._local(argument & 15)]
        if name == "LOAD_GLOBAL":
            found: str | None = None if argument & 1 else self._code.co_names[argument >> 1]
        else:
            found = self._variable(name, argument) if name.startswith("LOAD_") else None
        if found is None:
            return None
        self._go_on()
        return [found]

    def _index(self) -> str | None:
        if self._name == "LOAD_CONST":
            found: str | None = repr(self._code.co_consts[self._argument])
        elif self._name == "LOAD_SMALL_INT":
            found = str(self._argument)
        else:
            loaded = self._loaded()
            return loaded[0] if loaded and len(loaded) == 1 else None
        self._go_on()
        return found

    def _variable(self, name: str, argument: int) -> str | None:
        kind = name.removesuffix("_BORROW").removesuffix("_CHECK").partition("_")[2]
        if name in _BY_NAME or kind == "GLOBAL":
            return self._code.co_names[argument]
        return self._local(argument) if kind in ("FAST", "DEREF") else None

    def _local(self, argument: int) -> str:
        name_of: Any = self._code._varname_from_oparg  # type: ignore[attr-defined]
        return str(name_of(argument))


def _steps(code: CodeType, offset: int) -> Iterator[tuple[str, int]]:
    """Name and argument of each instruction after the one at `offset`, but for those that do nothing here."""
    extended, raw = 0, code.co_code
    for position in range(offset + 2, len(raw), 2):
        name, argument = dis.opname[raw[position]], raw[position + 1] | extended
        extended = argument << 8 if name == "EXTENDED_ARG" else 0
        if name not in _FILLERS:
            yield name, argument
