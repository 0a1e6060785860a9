"""Reads names from bytecode: which ones an expression reads, where each was bound, what a span of code may write.

These are facts of the compiled program; the source text is not read. Every reader of instructions asks this module;
only `assignment_targets` steps through raw code, for speed.

Known differences between the versions of CPython:

- 3.12: the lowest bit of LOAD_ATTR's argument marks a method; LOAD_METHOD is gone. RETURN_CONST returns a constant.
- 3.13: one instruction may load or store two local variables (LOAD_FAST_LOAD_FAST, STORE_FAST_LOAD_FAST, ...).
- 3.13: what enters and leaves a `with` block has the position of its manager; before, that of the whole statement.
- 3.14: `with` loads `__enter__` by LOAD_SPECIAL, not BEFORE_WITH; LOAD_SMALL_INT and LOAD_FAST_BORROW are new.
- All: `f_lasti` may be an offset inside the caches of an instruction. The position of a store covers its target only.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType, ModuleType

from tensorlens.tracer.frames.large_code import once, raw_position

Instructions = tuple[dis.Instruction, ...]
_LOADS = ("LOAD_NAME", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_")
_STORES = ("STORE_NAME", "STORE_FAST", "STORE_GLOBAL", "STORE_DEREF")
_NAMES = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF", "STORE_NAME", "STORE_FAST"}
_PARTS_OF_A_STORE = ("STORE_", "UNPACK_", "COPY", "SWAP", "CACHE", "NOP", "EXTENDED_ARG", "PRECALL")
_ITEM_STORES = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
_ITEM_AND_ATTRIBUTE_STORES = (*_ITEM_STORES, "STORE_ATTR")
_CALLS = ("CALL", "CALL_FUNCTION_EX", "CALL_KW")
_WITH = ("BEFORE_WITH", "LOAD_SPECIAL")
_ENTERING = {dis.opmap.get(name, -1) for name in ("BEFORE_WITH", "BEFORE_ASYNC_WITH", "LOAD_SPECIAL")}
_NO_EFFECT = ("CACHE", "NOP", "EXTENDED_ARG", "COPY", "SWAP")
_MUTATORS = frozenset(
    "append extend insert pop remove clear update setdefault popitem add discard sort reverse appendleft".split()
)


@lru_cache(maxsize=64)
def instructions(code: CodeType) -> Instructions:
    """Returns the instructions of a code object."""
    return tuple(dis.get_instructions(code))


def is_of_block(code: CodeType, offset: int) -> bool:
    """Returns whether an instruction enters or leaves a `with` block, and has the position of the block's manager."""
    if not _AT_MANAGER:
        return False
    entries = once(code, _block_entries)
    return bool(entries) and offset >= entries.get(raw_position(code, offset), offset + 1)


def _block_entries(code: CodeType) -> dict[object, int]:
    """Returns the offset at which each `with` block is entered, by the position of the instruction there."""
    found: dict[object, int] = {}
    if not _ENTERING.isdisjoint(code.co_code[::2]):
        for index, position in enumerate(code.co_positions()):
            if code.co_code[2 * index] in _ENTERING:
                found.setdefault(position, 2 * index)
    return found


_AT_MANAGER = any(position[2] for position in _block_entries(compile("with a: b", "", "exec")))  # type: ignore[index]


def names_read(instruction: dis.Instruction) -> tuple[str, ...]:
    """Returns the names that an instruction reads."""
    if not instruction.opname.startswith(_LOADS) and not instruction.opname.endswith("LOAD_FAST"):
        return ()
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return tuple(map(str, names[1:] if instruction.opname.startswith("STORE_FAST_") else names))


def names_bound(instruction: dis.Instruction) -> tuple[str, ...]:
    """Returns the names that an instruction binds."""
    if not instruction.opname.startswith(_STORES):
        return ()
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return tuple(map(str, names[:1] if instruction.opname.endswith("LOAD_FAST") else names))


def attribute_stores(code: CodeType, name: str) -> list[int]:
    """Returns the offsets of the instructions that set an attribute of this name, on any object."""
    return [i.offset for i in instructions(code) if i.opname == "STORE_ATTR" and i.argval == name]


def loads_any_of(code: CodeType, names: frozenset[str]) -> bool:
    """Returns whether a code object reads one of these names as a global, not as an attribute."""
    return any(i.opname in ("LOAD_GLOBAL", "LOAD_NAME") and i.argval in names for i in dis.get_instructions(code))


def returns(code: CodeType) -> list[int]:
    """Returns the offsets of the instructions that return a value.

    The None at the end of every function does not count, unless the function returns nothing else.
    """
    values: list[int] = []
    nones: list[int] = []
    before: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RETURN_VALUE":
            is_none = before is not None and before.opname == "LOAD_CONST" and before.argval is None
            (nones if is_none else values).append(instruction.offset)
        elif instruction.opname == "RETURN_CONST":
            (nones if instruction.argval is None else values).append(instruction.offset)
        before = instruction
    return values or nones


def may_write(instruction: dis.Instruction) -> bool:
    """Returns whether an instruction may write to the memory of an object: an item store, `+=`, or any call."""
    if instruction.opname == "BINARY_OP":
        return instruction.argrepr.endswith("=")
    return instruction.opname in _ITEM_STORES or instruction.opname in _CALLS


def innermost_loop(code: CodeType, first: int, last: int) -> tuple[int, int] | None:
    """Returns the offsets of the first and last instruction of the innermost loop around `first` and `last`."""
    for instruction in instructions(code):
        jumps_back = "JUMP_BACKWARD" in instruction.opname or "JUMP_ABSOLUTE" in instruction.opname
        if jumps_back and instruction.offset >= first and int(instruction.argval) <= last:
            return int(instruction.argval), instruction.offset
    return None


def names_in_span(code: CodeType, low: int, high: int) -> Iterator[tuple[str, bool]]:
    """Finds (name, whether it is an attribute) in the instructions between two offsets."""
    for instruction in instructions(code):
        if low < instruction.offset < high:
            if instruction.opname in _NAMES:
                yield str(instruction.argval), False
            elif instruction.opname in ("LOAD_METHOD", "LOAD_ATTR"):
                yield str(instruction.argval), True


def names_read_by(code: CodeType, offset: int) -> dict[str, int]:
    """Returns the names that the expression at `offset` reads, each with the offset where it is first read."""
    names: dict[str, int] = {}
    target = [i for i in instructions(code) if i.offset <= offset][-1]  # `f_lasti` may be in its caches
    for instruction in instructions(code):
        if instruction.offset < offset and _is_inside(instruction, target):
            for name in names_read(instruction):
                names.setdefault(name, instruction.offset)
    return names


def object_entered(frame: FrameType, offset: int) -> object:
    """Returns the object of the `with` statement at `offset` if that is a name or `module.name`, else None."""
    every = [i for i in instructions(frame.f_code) if i.offset <= offset and not i.opname.startswith(_NO_EFFECT)]
    if every[-1].opname not in _WITH:
        return None
    path: list[str] = []
    for instruction in reversed(every[:-1]):
        if instruction.opname == "LOAD_ATTR":
            path.append(str(instruction.argval))
            continue
        names = names_read(instruction)
        value: object = {**frame.f_globals, **frame.f_locals}.get(names[0]) if names else None
        for name in reversed(path):
            value = vars(value).get(name) if isinstance(value, ModuleType) else None
        return value
    return None


def _is_inside(inner: dis.Instruction, outer: dis.Instruction) -> bool:
    """Returns whether `inner` is part of the expression `outer`.

    The position of an assignment covers its target only, so everything on its lines counts as part of it.
    """
    part, whole = inner.positions, outer.positions
    if part is None or whole is None or part.lineno is None or whole.lineno is None:
        return False
    if outer.opname.startswith("STORE_"):
        return whole.lineno <= part.lineno <= (whole.end_lineno or whole.lineno)
    starts_inside = (part.lineno, part.col_offset or 0) >= (whole.lineno, whole.col_offset or 0)
    end = (whole.end_lineno or 0, whole.end_col_offset or 0)
    return starts_inside and (part.end_lineno or 0, part.end_col_offset or 0) <= end


def last_binding(code: CodeType, name: str, before: int) -> int | None:
    """Returns the offset of the expression that `name` was last bound to before `before`.

    If the name is bound only after `before`, as may be in a loop, returns the last of those.
    """
    every = instructions(code)
    stores = [position for position, instruction in enumerate(every) if name in names_bound(instruction)]
    if not stores:
        return None
    earlier = [position for position in stores if every[position].offset < before]
    position = (earlier or stores)[-1]
    while position > 0 and every[position].opname.startswith(_PARTS_OF_A_STORE):
        position -= 1
    return every[position].offset


def last_read(code: CodeType, name: str, before: int) -> int | None:
    """Returns the offset where `name` was last read before `before`, if that was after its last binding."""
    earlier = [i for i in instructions(code) if i.offset < before and (name in names_read(i) or name in names_bound(i))]
    return earlier[-1].offset if earlier and name in names_read(earlier[-1]) else None


def writes_to(code: CodeType, name: str, attribute: str = "") -> Iterator[int]:
    """Finds the offsets where the value of `name` may change.

    There, the name is bound, an item or attribute of its value is set, or a method that changes a container is called.
    With `attribute`, the same of the attribute of this name.
    """
    every = instructions(code)

    def reads(instruction: dis.Instruction) -> bool:
        if attribute:
            return instruction.opname == "LOAD_ATTR" and instruction.argval == attribute
        return name in names_read(instruction)

    for position, instruction in enumerate(every):
        opname = instruction.opname
        binds = (
            opname == "STORE_ATTR" and instruction.argval == attribute
            if attribute
            else name in names_bound(instruction)
        )
        if binds:
            yield instruction.offset
        elif opname.startswith(_ITEM_AND_ATTRIBUTE_STORES):
            if any(reads(other) and _begins_target(other, instruction) for other in every[:position]):
                yield instruction.offset
        elif opname in ("LOAD_METHOD", "LOAD_ATTR") and str(instruction.argval) in _MUTATORS:
            if reads(every[position - 1]):
                yield instruction.offset


def _begins_target(inner: dis.Instruction, outer: dis.Instruction) -> bool:
    """Returns whether the target of the store `outer` begins with what `inner` reads: `seen` in `seen[0].x = 1`."""
    part, whole = inner.positions, outer.positions
    return part is not None and whole is not None and (part.lineno, part.col_offset) == (whole.lineno, whole.col_offset)
