"""Tensors are found in values, with their paths, and without running code of the program."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlens.tracer.isolation.module_tree import collect_tensors, module_tensors, reachable_tensors

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
    named = list(reachable_tensors(value, depth, limit=16, path="value"))
    assert [id(tensor) for tensor in collected] == [id(tensor) for _, tensor in named]
    for path, tensor in named:
        assert eval(path, {"value": value}) is tensor


def test_a_limit_counts_the_items_of_each_container_and_leaves_subclasses_alone() -> None:
    class Loud(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError("code of the program runs")

    assert [path for path, _ in reachable_tensors([A, [B, B, B], A], limit=2)] == ["[0]", "[1][0]", "[1][1]"]
    assert list(reachable_tensors({(1, 2): A, "x": B}, limit=2)) == [("['x']", B)]
    assert list(reachable_tensors([Loud([A])], limit=2)) == []
    with pytest.raises(AssertionError, match="code of the program"):
        list(reachable_tensors(Loud([A])))


def test_modules_and_other_objects_are_searched_only_on_request() -> None:
    net = torch.nn.Linear(2, 1)
    value = {"net": net, "other": object()}
    assert list(reachable_tensors(value)) == []
    found = reachable_tensors(value, 1, 16, module_tensors, lambda other: [(".a", A)], "v")
    assert [path for path, _ in found] == ["v['net'].weight", "v['net'].bias"]
    found = reachable_tensors(value, 2, 16, module_tensors, lambda other: [(".a", A)], "v")
    assert [path for path, _ in found] == ["v['net'].weight", "v['net'].bias", "v['other'].a"]
