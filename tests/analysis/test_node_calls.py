"""The call that made a node is found by its sequence number, however many calls there are."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tensorlens.analysis.node_calls import NodeCalls


@dataclass
class _Call:
    index: int
    span: tuple[int, int]
    reads: list[int] = field(default_factory=list)

    @property
    def nodes(self) -> tuple[int, int]:
        self.reads.append(self.index)
        return self.span


def _innermost(calls: list[_Call], sequence: int, before: int) -> _Call | None:
    """The definition: the narrowest of the earlier calls whose range contains the number, of equal ones the latest."""
    around = [call for call in calls if call.index < before and call.span[0] <= sequence < call.span[1]]
    return min(around, key=lambda call: (call.span[1] - call.span[0], -call.index), default=None)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_innermost_of_nested_calls_and_the_latest_of_equal_ones(seed: int) -> None:
    numbers = random.Random(seed)
    calls = []
    for index in range(200):
        first = numbers.randrange(-1, 60)
        calls.append(_Call(index, (first, first + numbers.choice((0, 1, 1, 2, 3, 9, 40)))))
    found: Any = NodeCalls(calls)  # type: ignore[arg-type]
    for sequence in range(-2, 105):
        for before in (0, 50, 133, 200):
            assert found.innermost(sequence, before) is _innermost(calls, sequence, before)


def test_a_search_does_not_read_the_other_calls() -> None:
    reads: list[int] = []
    calls = [_Call(index, (2 * index, 2 * index + 1 + index % 2), reads) for index in range(2_000)]
    found: Any = NodeCalls(calls)  # type: ignore[arg-type]
    reads.clear()
    for call in calls:
        assert found.innermost(call.span[0], 2_000) is call
    assert len(reads) < 10 * len(calls)
