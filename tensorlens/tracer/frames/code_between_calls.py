"""Finds the instructions that ran between two recorded calls and may have written memory.

PyTorch does not see a write through a NumPy array, so it is noticed only at the next recorded call. The instructions
between that call and the one before it are the ones that can have made it.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType, FunctionType

from tensorlens.tracer.frames.bytecode import innermost_loop, instructions, may_write, names_in_span
from tensorlens.tracer.frames.call_sites import Sites

Place = tuple[tuple[CodeType, int], ...]
"""A place in the program: (code, offset) of each user frame, the outermost first."""
Span = tuple[CodeType, int, int]
"""The instructions of a code object after one offset and before another."""


def place_of(sites: Sites, frame: FrameType | None) -> Place:
    """Returns the place of the user's frames from `frame` outwards."""
    known = None if sites.compiled is None else sites.compiled.place(frame)
    if known is not None:
        return known
    place = []
    codes, user_files = sites.by_id, sites.user_files
    while frame is not None:
        code = frame.f_code
        offsets = codes[id(code)] if id(code) in codes else sites.offsets(code)
        if offsets is not None and (user_files.get(code.co_filename) or sites.is_user(code.co_filename)):
            place.append((code, frame.f_lasti))
        frame = frame.f_back
    place.reverse()
    return tuple(place)


def sites_of_writes(sites: Sites, before: Place, now: Place, frame: FrameType | None) -> tuple[int, ...]:
    """Returns the sites of the instructions between two places that may have written.

    A call may write or not: calls count only if no other instruction writes. Each line counts once.
    """
    spans = list(_spans(before, now))
    writes = [(code, instruction) for span in spans for code, instruction in _writes(span)]
    user_frame = sites.user_frame(frame)
    names = {} if user_frame is None else user_frame.f_globals
    for span in spans:
        for function in _functions_named(span, names):
            inner = function.__code__
            if sites.is_user(inner.co_filename):
                writes += _writes((inner, -1, len(inner.co_code)))
    certain = [(code, instruction) for code, instruction in writes if not instruction.opname.startswith("CALL")]
    by_line: dict[tuple[CodeType, int | None], int] = {}
    for code, instruction in certain or writes:
        line = instruction.positions.lineno if instruction.positions else None
        by_line.setdefault((code, line), sites.at(code, instruction.offset, frame))
    return tuple(by_line.values())


def site_of_write(sites: Sites, code: CodeType, line: int, frame: FrameType | None) -> int:
    """Returns the site of the instruction of a line that may have written: a store to an item, `+=`, else a call."""
    every = [i for i in instructions(code) if i.positions is not None and i.positions.lineno == line]
    writes = [instruction for instruction in every if may_write(instruction)]
    certain = [instruction for instruction in writes if not instruction.opname.startswith("CALL")]
    chosen = next(iter([*certain, *reversed(writes), *reversed(every)]), None)
    return sites.at(code, 0 if chosen is None else chosen.offset, frame)


def _spans(before: Place, now: Place) -> Iterator[Span]:
    """Finds everything that ran between two places."""
    common, shorter = 0, min(len(before), len(now))
    while common < shorter and before[common] == now[common]:
        common += 1
    if common < shorter and before[common][0] is now[common][0]:
        code, start, end = before[common][0], before[common][1], now[common][1]
        yield from [(code, start, end)] if start <= end else _around_loop(code, start, end)
        common += 1
    elif common == shorter and common and len(before) == len(now):
        code, offset = now[-1]
        yield from _around_loop(code, offset, offset)
    for code, offset in before[common:]:
        yield code, offset, len(code.co_code)
    for code, offset in now[common:]:
        yield code, -1, offset


def _around_loop(code: CodeType, start: int, end: int) -> Iterator[Span]:
    """Finds what ran from `start` to the end of the innermost loop around both, and from its beginning to `end`."""
    loop = innermost_loop(code, start, end)
    if loop is not None:
        first, last = loop
        yield code, start, last
        yield code, first, end


def _writes(span: Span) -> Iterator[tuple[CodeType, dis.Instruction]]:
    """Finds the instructions inside a span that may write. Those at its ends, and their caches, are not inside."""
    code, low, high = span
    every = instructions(code)
    following = [*(instruction.offset for instruction in every[1:]), len(code.co_code)]
    for instruction, after in zip(every, following, strict=True):
        if low < instruction.offset and after <= high and may_write(instruction):
            yield code, instruction


def _functions_named(span: Span, names: Mapping[str, object]) -> Iterator[FunctionType]:
    """Finds the global functions that a span names, and the methods of global objects that its attributes may mean."""
    for name, is_attribute in names_in_span(*span):
        if not is_attribute:
            value = names.get(name)
            if type(value) is FunctionType:
                yield value
        else:
            for kind in {type(value) for value in names.values()}:
                method = vars(kind).get(name)
                if type(method) is FunctionType:
                    yield method
