"""Reads from bytecode where the value of an instruction is stored: names, attributes, items, nested and starred."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import CodeType

from tensorlens.tracer.frames.large_code import raw_bytes

_NO_EFFECT = {"CACHE", "NOP", "PRECALL", "EXTENDED_ARG", "COPY", "RESUME", "NOT_TAKEN"}
_BY_NAME = {"STORE_NAME", "STORE_GLOBAL", "LOAD_NAME"}
_ATTRIBUTE_FLAG = sys.version_info >= (3, 12)  # the lowest bit of LOAD_ATTR's argument says that a method is loaded
STARRED = "*"  # before the name that takes the rest of the values


def targets_of(code: CodeType, offset: int) -> tuple[str, ...]:
    """Returns the targets of the instruction at `offset`, if its value is stored at once.

    Nested targets are flat. A starred one is `*rest`; attributes and items are `self.a` and `xs[0]`.
    """
    return tuple(_TargetReader(code, offset).target() or ())


class _TargetReader:
    """Reads the instructions from an offset on, one by one: disassembling a long function costs half a millisecond."""

    def __init__(self, code: CodeType, offset: int) -> None:
        self._code = code
        self._steps = _steps(code, offset)
        self._name, self._argument = next(self._steps, ("", 0))

    def _advance(self) -> None:
        self._name, self._argument = next(self._steps, ("", 0))

    def target(self) -> list[str] | None:
        """Reads one target with all of its parts; None if there is none."""
        name, argument = self._name, self._argument
        if name in ("UNPACK_SEQUENCE", "UNPACK_EX"):
            self._advance()
            return self._unpacked(argument & 255, argument >> 8, name == "UNPACK_EX")
        if name in ("STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST"):  # two stores in one: see `bytecode`
            following = name.removeprefix("STORE_FAST_")
            self._name, self._argument = following, argument & 15
            return [self._local(argument >> 4)]
        if name.startswith("STORE_") and (stored := self._variable(name, argument)) is not None:
            self._advance()
            return [stored]
        return self._place()

    def _unpacked(self, before: int, after: int, starred: bool) -> list[str] | None:
        targets: list[str] = []
        for position in range(before + starred + after):
            part = self.target()
            if part is None:
                return None
            targets += [STARRED + part[0]] if starred and position == before and len(part) == 1 else part
        return targets

    def _place(self) -> list[str] | None:
        """Reads `self.a` or `xs[0]`: a name is loaded, then an attribute or item of it is set."""
        path = self._loaded()
        if path is None:
            return None
        while self._name == "LOAD_ATTR":
            path.append(f"{path.pop()}.{self._code.co_names[self._argument >> _ATTRIBUTE_FLAG]}")
            self._advance()
        if self._name == "STORE_ATTR":
            whole = f"{path.pop()}.{self._code.co_names[self._argument]}"
        elif len(path) == 1 and (index := self._index()) is not None and self._name == "STORE_SUBSCR":
            whole = f"{path.pop()}[{index}]"
        elif len(path) == 2 and self._name == "STORE_SUBSCR":
            index, whole = path.pop(), path.pop()
            whole = f"{whole}[{index}]"
        else:
            return None
        self._advance()
        return [whole] if not path else None

    def _loaded(self) -> list[str] | None:
        """Reads the names that the next instruction loads."""
        name, argument = self._name, self._argument
        if name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
            self._advance()
            return [self._local(argument >> 4), self._local(argument & 15)]
        if name == "LOAD_GLOBAL":
            name_loaded: str | None = None if argument & 1 else self._code.co_names[argument >> 1]
        else:
            name_loaded = self._variable(name, argument) if name.startswith("LOAD_") else None
        if name_loaded is None:
            return None
        self._advance()
        return [name_loaded]

    def _index(self) -> str | None:
        if self._name == "LOAD_CONST":
            index: str | None = repr(self._code.co_consts[self._argument])
        elif self._name == "LOAD_SMALL_INT":
            index = str(self._argument)
        else:
            loaded = self._loaded()
            return loaded[0] if loaded and len(loaded) == 1 else None
        self._advance()
        return index

    def _variable(self, name: str, argument: int) -> str | None:
        kind = name.removesuffix("_BORROW").removesuffix("_CHECK").partition("_")[2]
        if name in _BY_NAME or kind == "GLOBAL":
            return self._code.co_names[argument]
        return self._local(argument) if kind in ("FAST", "DEREF") else None

    def _local(self, argument: int) -> str:
        return str(self._code._varname_from_oparg(argument))  # type: ignore[attr-defined]


def _steps(code: CodeType, offset: int) -> Iterator[tuple[str, int]]:
    """Finds the name and argument of each instruction after the one at `offset`, without those of no effect."""
    extended, raw = 0, raw_bytes(code)
    for position in range(offset + 2, len(raw), 2):
        name, argument = dis.opname[raw[position]], raw[position + 1] | extended
        extended = argument << 8 if name == "EXTENDED_ARG" else 0
        if name not in _NO_EFFECT:
            yield name, argument
