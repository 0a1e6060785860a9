"""What a code object says of its names: which of them an expression reads, and where each was bound.

These are facts of the compiled program; the source text is not looked at.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType, ModuleType

Instructions = tuple[dis.Instruction, ...]
_LOADS = ("LOAD_NAME", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_")
_STORES = ("STORE_NAME", "STORE_FAST", "STORE_GLOBAL", "STORE_DEREF")
_BETWEEN = ("STORE_", "UNPACK_", "COPY", "SWAP", "CACHE", "NOP", "EXTENDED_ARG", "PRECALL")
_ITEM_WRITES = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE", "STORE_ATTR")
_ENTERS = ("BEFORE_WITH", "LOAD_SPECIAL")  # up to Python 3.13, from 3.14
_FILLERS = ("CACHE", "NOP", "EXTENDED_ARG", "COPY", "SWAP")
_MUTATORS = frozenset(
    "append extend insert pop remove clear update setdefault popitem add discard sort reverse appendleft".split()
)


@lru_cache(maxsize=64)
def instructions(code: CodeType) -> Instructions:
    return tuple(dis.get_instructions(code))


def read(instruction: dis.Instruction) -> tuple[str, ...]:
    """The names that an instruction reads."""
    if not instruction.opname.startswith(_LOADS) and not instruction.opname.endswith("LOAD_FAST"):
        return ()
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return tuple(map(str, names[1:] if instruction.opname.startswith("STORE_FAST_") else names))


def bound(instruction: dis.Instruction) -> tuple[str, ...]:
    """The names that an instruction binds."""
    if not instruction.opname.startswith(_STORES):
        return ()
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return tuple(map(str, names[:1] if instruction.opname.endswith("LOAD_FAST") else names))


def names_read_by(code: CodeType, offset: int) -> dict[str, int]:
    """The names that the expression at `offset` reads, each with the offset of its first reading."""
    found: dict[str, int] = {}
    target = [i for i in instructions(code) if i.offset <= offset][-1]  # a frame's own offset may lie in its caches
    for instruction in instructions(code):
        if instruction.offset < offset and _within(instruction, target):
            for name in read(instruction):
                found.setdefault(name, instruction.offset)
    return found


def entered(frame: FrameType, offset: int) -> object:
    """What the `with` statement at `offset` was given, where names and attributes of modules lead to it; else None."""
    every = [i for i in instructions(frame.f_code) if i.offset <= offset and not i.opname.startswith(_FILLERS)]
    if every[-1].opname not in _ENTERS:
        return None
    path: list[str] = []
    for instruction in reversed(every[:-1]):
        if instruction.opname == "LOAD_ATTR":
            path.append(str(instruction.argval))
            continue
        names = read(instruction)
        value: object = {**frame.f_globals, **frame.f_locals}.get(names[0]) if names else None
        for name in reversed(path):
            value = vars(value).get(name) if isinstance(value, ModuleType) else None
        return value
    return None


def _within(inner: dis.Instruction, outer: dis.Instruction) -> bool:
    """Whether `inner` is part of the expression `outer`; an assignment's position is that of its target alone, so all
    on its lines counts as part of it."""
    one, all_ = inner.positions, outer.positions
    if one is None or all_ is None or one.lineno is None or all_.lineno is None:
        return False
    if outer.opname.startswith("STORE_"):
        return all_.lineno <= one.lineno <= (all_.end_lineno or all_.lineno)
    starts = (one.lineno, one.col_offset or 0) >= (all_.lineno, all_.col_offset or 0)
    return starts and (one.end_lineno or 0, one.end_col_offset or 0) <= (all_.end_lineno or 0, all_.end_col_offset or 0)


def binding(code: CodeType, name: str, before: int) -> int | None:
    """The offset of the expression whose value `name` was bound to last before `before`; in a loop it may stand
    after it."""
    every = instructions(code)
    stores = [position for position, instruction in enumerate(every) if name in bound(instruction)]
    if not stores:
        return None
    earlier = [position for position in stores if every[position].offset < before]
    position = (earlier or stores)[-1]
    while position > 0 and every[position].opname.startswith(_BETWEEN):
        position -= 1
    return every[position].offset


def last_read(code: CodeType, name: str, before: int) -> int | None:
    """The offset of the last reading of `name` before `before`, if it was read since it was bound."""
    earlier = [i for i in instructions(code) if i.offset < before and (name in read(i) or name in bound(i))]
    return earlier[-1].offset if earlier and name in read(earlier[-1]) else None


def writes_to(code: CodeType, name: str, attribute: str = "") -> Iterator[int]:
    """The offsets at which the value of `name` may change: it is bound, an item or attribute of it is set, or a method
    that changes a container is called on it. With `attribute`: the same of the attribute of this name."""
    every = instructions(code)

    def reads(instruction: dis.Instruction) -> bool:
        if attribute:
            return instruction.opname == "LOAD_ATTR" and instruction.argval == attribute
        return name in read(instruction)

    for position, instruction in enumerate(every):
        opname = instruction.opname
        binds = opname == "STORE_ATTR" and instruction.argval == attribute if attribute else name in bound(instruction)
        if binds:
            yield instruction.offset
        elif opname.startswith(_ITEM_WRITES):
            if any(reads(other) and _begins(other, instruction) for other in every[:position]):
                yield instruction.offset
        elif opname in ("LOAD_METHOD", "LOAD_ATTR") and _method(instruction) in _MUTATORS:
            if reads(every[position - 1]):
                yield instruction.offset


def _method(instruction: dis.Instruction) -> str:
    return str(instruction.argval)


def _begins(inner: dis.Instruction, outer: dis.Instruction) -> bool:
    """Whether the target of an assignment begins with what `inner` reads: `seen` in `seen[0].x = 1`."""
    one, all_ = inner.positions, outer.positions
    return one is not None and all_ is not None and (one.lineno, one.col_offset) == (all_.lineno, all_.col_offset)
