"""Reads positions of code objects with many lines without going through them for each one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlens
from tensorlens.tracer.frames import large_code

CODE = compile("\n".join(f"a{n} = b{n} + {n}" for n in range(300)), "lines.py", "exec")
OTHERS = [compile(f"c{n} = {n}", f"{n}.py", "exec") for n in range(large_code.MOST)]
POSITIONS = list(CODE.co_positions())


@given(st.lists(st.integers(0, len(POSITIONS) + 2)), st.booleans())
def test_positions_are_those_of_the_code_in_any_order(indices: list[int], others: bool) -> None:
    for index in indices:
        expected = POSITIONS[index] if index < len(POSITIONS) else None
        assert large_code.raw_position(CODE, 2 * index) == expected
        if others:
            for code in OTHERS:
                large_code.raw_bytes(code)
    assert large_code.raw_bytes(CODE) == CODE.co_code


def test_something_is_made_once() -> None:
    made: list[object] = []

    def make(code: object) -> int:
        made.append(code)
        return len(made)

    assert [large_code.once(CODE, make) for _ in range(3)] == [1, 1, 1]


def _program(lines: int) -> Callable[[], object]:
    text = "import torch\ndef program():\n    x = torch.ones(1)\n" + "".join(
        f"    y{n} = x * {n}\n" for n in range(lines)
    )
    space: dict[str, Callable[[], object]] = {}
    exec(compile(text, __file__, "exec"), space)
    return space["program"]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the positions that are read."""
    counted = [0]
    begin = large_code._Cursor._begin

    def counting(cursor: large_code._Cursor) -> None:
        begin(cursor)
        following = cursor._following

        def each() -> Iterator[large_code.RawPosition]:
            for position in following:
                counted[0] += 1
                yield position

        cursor._following = each()

    monkeypatch.setattr(large_code._Cursor, "_begin", counting)
    return counted


def test_a_long_function_is_read_once(read: list[int]) -> None:
    counts = []
    for lines in (200, 400):
        program, read[0] = _program(lines), 0
        with tensorlens.trace() as lens:
            program()
        sites = [site for site in lens.trace().sites if site.function == "program"]
        assert len({site.span.line for site in sites}) == lines + 1
        counts.append(read[0])
    assert counts[1] < 2.5 * counts[0]
