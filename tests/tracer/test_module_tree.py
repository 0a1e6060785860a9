"""Tensors are found in values, with their paths, and without running code of the program."""

from __future__ import annotations

import tracemalloc
from collections import OrderedDict, deque
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.warm import Warm

from tensorlens.records.model import Gap
from tensorlens.tracer.isolation.module_tree import Limit, collect_tensors, module_tensors, reachable_tensors

A, B = torch.zeros(1), torch.ones(2)
LEAVES = st.sampled_from([A, B, 1, "text", None])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=1), inner),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.integers(0, 4))
def test_both_searches_find_the_same_tensors(value: Any, depth: int) -> None:
    collected: list[torch.Tensor] = []
    collect_tensors(value, collected, depth)
    assert [id(tensor) for tensor in collected] == [id(tensor) for _, tensor in reachable_tensors(value, depth)]
    named = list(reachable_tensors(value, depth, limit=Limit(), path="value"))
    assert [id(tensor) for tensor in collected] == [id(tensor) for _, tensor in named]
    for path, tensor in named:
        assert eval(path, {"value": value}) is tensor


def test_a_limit_counts_the_items_of_each_container_and_leaves_subclasses_alone() -> None:
    class Loud(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError("code of the program runs")

    assert [path for path, _ in reachable_tensors([A, [B, B, B], A], limit=Limit(2))] == ["[0]", "[1][0]", "[1][1]"]
    assert list(reachable_tensors({(1, 2): A, "x": B}, limit=Limit(2))) == [("['x']", B)]
    assert list(reachable_tensors([Loud([A])], limit=Limit(2))) == []
    with pytest.raises(AssertionError, match="code of the program"):
        list(reachable_tensors(Loud([A])))


def test_modules_and_other_objects_are_searched_only_on_request() -> None:
    net = torch.nn.Linear(2, 1)
    value = {"net": net, "other": object()}
    assert list(reachable_tensors(value)) == []
    modules = partial(module_tensors, limit=Limit())
    found = reachable_tensors(value, 1, Limit(), modules, lambda other: [(".a", A)], "v")
    assert [path for path, _ in found] == ["v['net'].weight", "v['net'].bias"]
    found = reachable_tensors(value, 2, Limit(), modules, lambda other: [(".a", A)], "v")
    assert [path for path, _ in found] == ["v['net'].weight", "v['net'].bias", "v['other'].a"]


HOSTILE = """
import os
import torch


def loud(self, *args):
    os.write(1, b"CALLED")
    raise RuntimeError("called")


NAMES = "__iter__ __len__ __bool__ __eq__ __repr__ __getitem__ __contains__ items values keys"


class Meta(type):
    __instancecheck__ = __subclasscheck__ = __dir__ = __getattribute__ = loud


class Kept(list):
    __class__ = property(loud)


class Plain:
    __class__ = __dict__ = property(loud)


class Strange(metaclass=Meta): ...
for kind in (Kept, Plain):
    for name in NAMES.split():
        setattr(kind, name, loud)
    kind.__hash__ = object.__hash__
    kind.__getattribute__ = loud


class Net(torch.nn.Linear):
    pass


net = Net(2, 1)
for number, value in enumerate((Kept(), Plain(), object.__new__(Strange), Strange, Kept, Plain)):
    vars(net)[f"a{number}"] = value
    vars(net)[f"b{number}"] = [value, (value,), {"k": value}]
    globals()[f"c{number}"] = value
    globals()[f"d{number}"] = [value, {"k": value, 1: value}]
vars(net)[7] = [torch.ones(1)]
net.itself = [torch.ones(1)]
net.itself.append(net.itself)
net.keys = {"x" * 1000: torch.ones(1), 10**5000: torch.ones(1), "kept": torch.ones(1)}
torch.optim.SGD(net.parameters(), 0.1)
net(torch.ones(1, 2)).sum().backward()
kept = net.itself[0]
"""


def test_no_search_runs_code_of_the_program(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(HOSTILE)
    plain, (ran, trace) = warm.plain(script), warm.traced(script)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "") == (plain.returncode, plain.stdout, plain.stderr)
    assert not [event for event in trace.events if isinstance(event, Gap)]
    names = {binding.name for binding in trace.end.bindings}
    assert {"net.weight", "net.itself[0]", "net.itself[1][0]", "net.keys['kept']", "kept"} <= names
    assert not any("x" * 1000 in name for name in names)


def test_a_search_looks_at_a_limited_number_of_items() -> None:
    """A list or a dict with a million items costs no more than a short one, and a million containers end the search."""
    net = torch.nn.Linear(1, 1)
    vars(net)["many"] = {str(number): A for number in range(100_000)}
    vars(net)["long"] = [0] * 1_000_000
    limit = Limit()
    found = [path for path, _ in module_tensors("net", net, limit)]
    assert (len(found), limit.left) == (2 + 16, Limit().left - 32)
    vars(net).update({f"more{number}": [[A] * 16] * 16 for number in range(1000)})
    limit = Limit()
    found = [path for path, _ in module_tensors("net", net, limit)]
    assert limit.left == 0
    assert len(found) < Limit().left
    assert found[:2] == ["net.weight", "net.bias"]


def test_a_large_dict_is_not_copied() -> None:
    value = dict.fromkeys(range(1_000_000), A)
    tracemalloc.start()
    try:
        assert len(list(reachable_tensors(value, 1, Limit()))) == 16
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


class LoudDict(OrderedDict[str, torch.Tensor]):
    def items(self) -> Any:
        raise AssertionError("code of the program runs")


def test_collections_are_searched_where_they_are_wanted() -> None:
    value = [OrderedDict(a=A), deque([B])]
    assert list(reachable_tensors(value, limit=Limit())) == []
    assert list(reachable_tensors(value, limit=Limit(collections=True))) == [("[0]['a']", A), ("[1][0]", B)]
    assert list(reachable_tensors([LoudDict(a=A)], limit=Limit(collections=True))) == []
