"""The calls of each tensor, packed or not, are the same."""

from __future__ import annotations

import random
from array import array

from hypothesis import given
from hypothesis import strategies as st

from tensorlens.journal.call_runs import CallRun, Item
from tensorlens.journal.compact_calls import INT
from tensorlens.journal.explaining_calls import _LATEST, ExplainingCalls
from tensorlens.journal.rows import NONE, CallRow, of_alias

STEPS = "", "Adam.step", "SGD.step"


def compact(tensor: int, base: int) -> bytes:
    return array("q", (7, tensor + 1, 0, tensor, base, 0, 3)).tobytes()


def row(tensor: int, storage: int) -> CallRow:
    state = tensor, 0, True, False, "MulBackward0", tensor, False, storage
    return CallRow("op", 0, (), (tensor, 0), (), (state,), 0, 0, 0)


def item(chance: random.Random, index: int, tensor: int) -> Item:
    """Returns a call that made or changed a tensor: most are compact."""
    base = chance.choice((NONE, 3, of_alias(chance.randrange(9))))
    call = row(tensor, chance.randrange(9)) if chance.random() < 0.2 else compact(tensor, base)
    return index, call, chance.choice(STEPS)


def add_some(kept: ExplainingCalls, chance: random.Random, index: int) -> list[tuple[int, Item]]:
    """Adds calls in one of three ways. Returns them, each with the tensor that it explains."""
    tensor = chance.randrange(12)
    added = item(chance, index, tensor)
    if isinstance(added[1], CallRow):
        tensors = [tensor, *(chance.randrange(12) for _ in range(chance.randrange(6)))]
        kept.add_to_each(tensors, added)
        return [(each, added) for each in tensors]
    if chance.random() < 0.5:
        kept.add(tensor, added)
        return [(tensor, added)]
    tensors = [chance.randrange(12) for _ in range(4)]
    calls = [compact(each, NONE) for each in tensors]
    ends = array("I", [len(b"".join(calls[: number + 1])) // INT for number in range(4)]).tobytes()
    start, needed = chance.randrange(4), {chance.randrange(12) for _ in range(20)} if chance.random() < 0.5 else None
    run = CallRun(index, b"".join(calls), ends, chance.choice(STEPS), start)
    kept.add_run(run, needed)
    found = [(tensors[n], (index + n, calls[n], run.within)) for n in range(start, 4)]
    return [each for each in found if needed is None or each[0] in needed]


@given(st.integers(0, 1 << 30), st.integers(0, 60))
def test_calls_that_are_packed_at_any_moment_are_those_that_were_added(seed: int, length: int) -> None:
    chance, kept, plain = random.Random(seed), ExplainingCalls(), dict[int, list[Item]]()
    for index in range(length):
        if chance.random() < 0.15:
            needed = {tensor for tensor in range(12) if chance.random() < 0.7}
            kept.forget_all_but(needed)
            if chance.random() < 0.5:
                kept.pack()
            plain = {tensor: items for tensor, items in plain.items() if tensor in needed}
        added = add_some(kept, chance, 4 * index)
        for tensor, each in added:
            items = plain.setdefault(tensor, [])
            items.append(each)
            del items[1:-_LATEST]
    everything = {each[0]: each for items in plain.values() for each in items}
    assert {tensor: list(kept.of(tensor)) for tensor in range(12) if kept.of(tensor)} == plain
    assert kept.indices() == everything.keys()
    assert kept.since(2 * length) == {index: each for index, each in everything.items() if index >= 2 * length}
    assert set(kept.storages()) == set().union(*(storages(each[1]) for each in everything.values()))


def storages(call: object) -> set[int | None]:
    if isinstance(call, bytes):
        base = array("q", call)[-3]
        return {of_alias(base)} if base < NONE else set()
    assert isinstance(call, CallRow)
    return {state[7] for state in call.states}
