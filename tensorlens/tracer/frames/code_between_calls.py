"""What ran between two recorded calls: read from the bytecode, because no call of torch's tells it.

A change of memory that torch does not see is noticed at the next recorded call. The instructions between that call and
the one before it, that can write, are the ones that can have made it.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

Place = tuple[tuple[CodeType, int], ...]
"""Where the user's frames stand: (code, offset), the outermost first."""

_STORES = {"STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR"}
_CALLS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW"}
_NAMES = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF", "STORE_NAME", "STORE_FAST"}


def place_of(recorder: Any, frame: FrameType | None) -> Place:
    """The user's frames from `frame` outwards."""
    sites, found = recorder.sites, []
    codes = sites.by_id
    while frame is not None:
        code = frame.f_code
        offsets = codes[id(code)] if id(code) in codes else sites.offsets(code)
        if offsets is not None and sites.is_user(code.co_filename):
            found.append((code, frame.f_lasti))
        frame = frame.f_back
    found.reverse()
    return tuple(found)


def changed_between(recorder: Any, before: Place, now: Place, frame: FrameType | None) -> tuple[int, ...]:
    """The sites of the instructions between two places that can have written, the likeliest kind only."""
    spans = list(_spans(before, now))
    found = [(code, i) for code, low, high in spans for i in _writing(code, low, high)]
    namespace = _names_in_sight(recorder, frame)
    for code, low, high in spans:
        for function in _called(code, low, high, namespace):
            if recorder.sites.is_user(function.__code__.co_filename):
                inner = function.__code__
                found += [(inner, i) for i in _writing(inner, -1, len(inner.co_code))]
    certain = [(code, i) for code, i in found if i.opname not in _CALLS]
    chosen = certain or found
    sharp: dict[tuple[CodeType, int | None], int] = {}
    for code, instruction in chosen:
        line = instruction.positions.lineno if instruction.positions else None
        sharp.setdefault((code, line), recorder.sites.at(code, instruction.offset, frame))
    return tuple(sharp.values())


def _spans(before: Place, now: Place) -> Iterator[tuple[CodeType, int, int]]:
    """(code, offset after which, offset before which) of all that ran between two places."""
    common = 0
    while common < min(len(before), len(now)) and before[common] == now[common]:
        common += 1
    if common < min(len(before), len(now)) and before[common][0] is now[common][0]:
        code, start, end = before[common][0], before[common][1], now[common][1]
        yield from [(code, start, end)] if start <= end else _round_the_loop(code, start, end)
        common += 1
    elif common == min(len(before), len(now)) and common and len(before) == len(now):
        code, offset = now[-1]
        yield from _round_the_loop(code, offset, offset)
    for code, offset in before[common:]:
        yield code, offset, len(code.co_code)
    for code, offset in now[common:]:
        yield code, -1, offset


def _round_the_loop(code: CodeType, start: int, end: int) -> Iterator[tuple[CodeType, int, int]]:
    """From `start` to the end of the innermost loop that holds both, and from its beginning to `end`."""
    for instruction in dis.get_instructions(code):
        jumps_back = "JUMP_BACKWARD" in instruction.opname or "JUMP_ABSOLUTE" in instruction.opname
        if jumps_back and instruction.offset >= start and int(instruction.argval) <= end:
            yield code, start, instruction.offset
            yield code, int(instruction.argval), end
            return


def _writing(code: CodeType, low: int, high: int) -> Iterator[dis.Instruction]:
    """Instructions that can write; neither of the two that the span lies between, nor the caches behind those."""
    instructions = list(dis.get_instructions(code))
    following = [*(instruction.offset for instruction in instructions[1:]), len(code.co_code)]
    for instruction, after in zip(instructions, following, strict=True):
        if low < instruction.offset and after <= high:
            in_place = instruction.opname == "BINARY_OP" and instruction.argrepr.endswith("=")
            if in_place or instruction.opname in _STORES or instruction.opname in _CALLS:
                yield instruction


def _names_in_sight(recorder: Any, frame: FrameType | None) -> dict[str, Any]:
    frame = recorder.sites.frame(frame)
    return {} if frame is None else frame.f_globals


def _called(code: CodeType, low: int, high: int, namespace: dict[str, Any]) -> Iterator[FunctionType]:
    """The plain functions, and methods of objects with a name, that the instructions in a span name."""
    for instruction in dis.get_instructions(code):
        if low < instruction.offset < high and instruction.opname in _NAMES:
            value = namespace.get(str(instruction.argval))
            if type(value) is FunctionType:
                yield value
        elif low < instruction.offset < high and instruction.opname in ("LOAD_METHOD", "LOAD_ATTR"):
            for kind in {type(value) for value in namespace.values()}:
                method = vars(kind).get(str(instruction.argval))
                if type(method) is FunctionType:
                    yield method
