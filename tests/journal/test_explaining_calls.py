"""The calls of each tensor, packed or not, are the same."""

from __future__ import annotations

import random
from array import array

from hypothesis import given
from hypothesis import strategies as st

from tensorlens.journal.call_runs import Item
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
        tensor = chance.randrange(12)
        added, tensors = item(chance, index, tensor), [tensor]
        if isinstance(added[1], CallRow):
            tensors = list({tensor, *chance.sample(range(12), chance.randrange(4))})
            kept.add_to_each(tensors, added)
        else:
            kept.add(tensor, added)
        for each in tensors:
            items = plain.setdefault(each, [])
            items.append(added)
            del items[1:-_LATEST]
    everything = {each[0]: each for items in plain.values() for each in items}
    assert {tensor: list(kept.of(tensor)) for tensor in range(12) if kept.of(tensor)} == plain
    assert kept.indices() == everything.keys()
    assert kept.since(length // 2) == {index: each for index, each in everything.items() if index >= length // 2}
    assert set(kept.storages()) == set().union(*(storages(each[1]) for each in everything.values()))


def storages(call: object) -> set[int | None]:
    if isinstance(call, bytes):
        base = array("q", call)[-3]
        return {of_alias(base)} if base < NONE else set()
    assert isinstance(call, CallRow)
    return {state[7] for state in call.states}
