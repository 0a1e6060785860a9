"""Names the node that recorded a tensor, without reading `grad_fn` of every tensor.

Reading `grad_fn` makes PyTorch keep a Python wrapper for the node as long as the node lives, and freeing a chain of
tens of thousands of wrapped nodes overflows the C stack. So `grad_fn` is read once for each kind of call. In other
calls of that kind, the node has the same place among the sequence numbers that the call used.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import FunctionType
from typing import Any

import torch

from tensorlens.journal.rows import NONE, SAME
from tensorlens.tracer.recording.fast_path import ATOMS
from tensorlens.tracer.recording.tensor_ids import PLAIN

MAX_READS = 5_000  # wrappers: freeing a chain of so many needs a small part of a thread's stack
MAX_KINDS = 50_000  # a program may pass another string at each call
FEW = 8  # results of one call whose nodes are read one by one

Node = tuple[str | None, int]  # name and sequence number
Place = tuple[str, int]  # name, and sequence number minus the first one that the call used

UNCHANGED: Node = (None, SAME)
UNKNOWN: Node = (None, NONE)
UNREAD: Place = ("", 0)


def is_leaf(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor is a leaf. PyTorch refuses to say so of a view that was made under `no_grad` and then
    written to: its history is not known, so it counts as none."""
    try:
        return tensor.is_leaf
    except RuntimeError:
        return False


def node_of(tensor: torch.Tensor) -> object:
    """Returns the node of a tensor; None without one, and for a view that a write to its base has invalidated."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def read_node(tensor: torch.Tensor) -> Node:
    """Reads the node of a tensor from `grad_fn`."""
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view invalidated by a write to its base
        return UNKNOWN
    return UNKNOWN if node is None else (node.name(), node._sequence_nr())


def kinds_of(value: Any, depth: int = 4) -> Any:
    """Returns what may decide which nodes a call makes: the types of its arguments, and values of bools and strings."""
    kind = type(value)
    if kind in ATOMS:
        return value if kind is bool or kind is str else kind
    if kind in PLAIN or isinstance(value, torch.Tensor):
        return value.ndim, value.requires_grad
    if kind in (list, tuple) and depth:
        return (kind, len(value), *[kinds_of(item, depth - 1) for item in value[:FEW]])
    if kind is dict and depth:
        return tuple([(str(name), kinds_of(item, depth - 1)) for name, item in value.items()])
    return value.__code__ if kind is FunctionType else kind


class GraphNodes:
    """Remembers, for each kind of call, the places of the nodes of its results."""

    def __init__(self) -> None:
        self._places: dict[Hashable, Place | None] = {}
        self._left = MAX_READS

    def read(self, tensor: torch.Tensor) -> Node:
        """Reads the node of a tensor from `grad_fn`; `UNKNOWN` once the run has read too many."""
        if self._left <= 0:
            return UNKNOWN
        self._left -= 1
        return read_node(tensor)

    def place(self, kind: Hashable, tensor: torch.Tensor, nodes: tuple[int, int]) -> Place | None:
        """Returns the place of a tensor's node among the nodes of a call: all calls of one `kind` have the same places.

        `nodes` are the first sequence number of the call and the one after its last. Returns None if an earlier call
        recorded the node, and `UNREAD` once the run has read too many.
        """
        try:
            return self._places[kind]
        except KeyError:
            if self._left <= 0:
                return UNREAD
            name, sequence = self.read(tensor)
            place = None if name is None or not nodes[0] <= sequence < nodes[1] else (name, sequence - nodes[0])
            if len(self._places) < MAX_KINDS:
                self._places[kind] = place
            return place

    def of_results(
        self, kind: tuple[Hashable, ...], tensors: Sequence[torch.Tensor], nodes: tuple[int, int]
    ) -> list[Node]:
        """Returns the nodes of tensors that a call returned or changed; `UNCHANGED` for those of earlier calls."""
        count = len(tensors)
        if not count or nodes[0] == nodes[1]:
            return [UNCHANGED] * count
        first = tensors[0]
        kind = (*kind, nodes[1] - nodes[0], count, first.ndim, first.dtype, first._base is not None)
        if count > FEW:
            return self._of_many(kind, tensors, nodes)
        places = [self.place((*kind, n), tensor, nodes) for n, tensor in enumerate(tensors)]
        return [_node_at(place, nodes[0]) for place in places]

    def _of_many(
        self, kind: tuple[Hashable, ...], tensors: Sequence[torch.Tensor], nodes: tuple[int, int]
    ) -> list[Node]:
        """Returns the nodes of many results: one node for all, or nodes at equal distances. Else each is `UNKNOWN`."""
        last = len(tensors) - 1
        places = [self.place((*kind, n), tensors[n], nodes) for n in (0, 1, last)]
        if None in places or UNREAD in places:
            return [UNKNOWN] * len(tensors)
        (name, start), (_, second), (_, end) = places  # type: ignore[misc]
        step = second - start
        if {place[0] for place in places if place is not None} != {name} or start + step * last != end:
            return [UNKNOWN] * len(tensors)
        return [(name, nodes[0] + start + step * n) for n in range(len(tensors))]


def _node_at(place: Place | None, first: int) -> Node:
    if place is None:
        return UNCHANGED
    return UNKNOWN if place is UNREAD else (place[0], first + place[1])
