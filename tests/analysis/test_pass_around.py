"""The pass around a moment is found by the nesting of passes, however many passes a run has."""

import random
from dataclasses import replace

import pytest
from support.traces import written_alias

from tensorlens.analysis.pass_around import pass_around
from tensorlens.records.model import Backward, Trace

Span = tuple[int, int]
MANY = 2_000


class Counted(int):
    """Counts its comparisons."""

    compared = 0

    def __le__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) <= other

    def __gt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) > other


def trace_of(spans: list[Span]) -> Trace:
    passes = [Backward(end, "Tensor.backward", 0, (), (), Counted(start), False, False, False) for start, end in spans]
    return replace(written_alias("a = b\nc = d\ne = f\ng\nh\n").trace, events=tuple(passes))


def nested(chance: random.Random, first: int, last: int) -> list[Span]:
    """Makes passes between two events, beside each other and inside each other."""
    spans: list[Span] = []
    while first <= last:
        end = chance.randint(first, last)
        start = chance.randint(first, end)
        if chance.random() < 0.7:
            spans += [*nested(chance, start, end - 1), (start, end)]
        first = end + 1
    return spans


@pytest.mark.parametrize("seed", range(20))
def test_the_first_pass_to_end_among_those_around_a_moment_is_found(seed: int) -> None:
    spans = nested(random.Random(seed), 0, 60)
    trace = trace_of(spans)
    for index in range(-1, 62):
        around = [span for span in spans if span[0] <= index <= span[1]]
        found = pass_around(trace, index)
        assert (None if found is None else (found.started, found.index)) == min(
            around, key=lambda s: s[1], default=None
        )


@pytest.mark.parametrize("in_one", [False, True])
def test_moments_of_forgotten_passes_do_not_make_it_look_at_all_others(in_one: bool) -> None:
    """A long run forgets its first passes, and keeps what happened in them."""
    first = 3 * MANY
    spans = [(first + 3 * n, first + 3 * n + 2) for n in range(MANY)]
    trace = trace_of([*spans, (first - 1, first + 3 * MANY)] if in_one else spans)
    Counted.compared = 0
    for index in range(0, first - 1, 3):
        assert pass_around(trace, index) is None
    assert Counted.compared < 8 * MANY
