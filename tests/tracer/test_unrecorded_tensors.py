"""Compares what a sampled run forgets of tensors in C (`fast_path_c/unrecorded.h`) with what it forgets in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.patches.table import installed
from tensorlens.tracer.recording import compiled

FastPath = compiled.FastPath
pytestmark = pytest.mark.skipif(FastPath is None, reason="not built from this source: python hatch_build.py")


class Marked(torch.Tensor):
    """A tensor of a class of the program."""


MADE: dict[str, Callable[[], torch.Tensor]] = {
    "leaf": lambda: torch.ones(3),
    "leaf that requires grad": lambda: torch.ones(3, requires_grad=True),
    "parameter": lambda: nn.Parameter(torch.ones(2, 2)),
    "result": lambda: torch.ones(2, requires_grad=True) * 2,
    "view": lambda: torch.ones(2, 3)[1],
    "view of a view": lambda: torch.ones(2, 3)[1].view(3, 1),
    "view of a parameter": lambda: nn.Parameter(torch.ones(4)).detach(),
    "part of a flat parameter": lambda: nn.Parameter(torch.ones(8)[2:4]),
    "empty": lambda: torch.ones(0),
    "on the meta device": lambda: torch.ones(2, device="meta"),
    "sparse": lambda: torch.eye(2).to_sparse(),
    "of another class": lambda: torch.ones(2).as_subclass(Marked),
}
CHANGES: dict[str, Callable[[torch.Tensor], object]] = {
    "nothing": lambda tensor: None,
    "other values": lambda tensor: tensor.add_(1),
    "other memory": lambda tensor: setattr(tensor, "data", tensor.data.clone()),
    "requires grad": lambda tensor: tensor.requires_grad_(True),
    "requires no grad": lambda tensor: tensor.requires_grad_(False),
}


def known_after(kinds: list[tuple[str, str, bool]], fast_path: Any) -> tuple[list[int | None], list[int], int]:
    """Records that tensors are made, changes them, and forgets what may have changed.

    Returns the ids of the tensors and of their bases that stay known, those of the storages at the addresses that
    stay, and how many tensors stay.
    """
    built, compiled.FastPath = compiled.FastPath, fast_path
    try:
        recorder = new_recorder((__file__,))
        with installed(recorder), recorder:
            tensors = [MADE[kind]() for kind, _, _ in kinds]
            for tensor in tensors:
                recorder.tensor_ids.id_of(tensor)
                recorder.state(tensor)
        with torch.no_grad():
            for tensor, (_, change, _) in zip(tensors, kinds, strict=True):
                try:
                    CHANGES[change](tensor)
                except RuntimeError:  # not all tensors allow every change
                    pass
        bases = [tensor._base for tensor in tensors]
        kept = [tensor for tensor, (_, _, lives) in zip(tensors, kinds, strict=True) if lives]
        del tensors
        if kinds:
            del tensor
        ids = recorder.tensor_ids
        ids.forget_unrecorded(recorder.leaves)
        found = [None if tensor is None else ids.find(tensor) for tensor in (*kept, *bases)]
        values = list(ids.blocks.values())
        recorder.close()
        return found, sorted(entry[3] for entry in values), len(ids.known)
    finally:
        compiled.FastPath = built


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([*MADE]), st.sampled_from([*CHANGES]), st.booleans()), max_size=8),
)
def test_the_compiled_fast_path_forgets_the_same(kinds: list[tuple[str, str, bool]]) -> None:
    assert known_after(kinds, FastPath) == known_after(kinds, None)


def test_what_is_where_it_was_stays_known_and_what_moved_does_not() -> None:
    same, moved = ("parameter", "other values", True), ("parameter", "other memory", True)
    (first, second, *_), _, count = known_after([same, moved], FastPath)
    assert first is not None
    assert second is None
    assert count == 1
