"""Walks the graph of autograd and reads what its nodes have saved."""

from __future__ import annotations

import heapq
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Protocol

import torch
from torch.utils.hooks import RemovableHandle

from tensorlens.tracer.saved_tensors.unchecked import READS_DATA, Unchecked

MAX_NODES = 20_000  # freeing a chain of more whose nodes Python has read can overflow the stack
_known_names: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()
LEAF_SEQUENCE = 2**63  # AccumulateGrad has no place in the order: its sequence number is 2**64 - 1


class Node(Protocol):
    """A node of the graph, as PyTorch's C++ side defines it. Its `_raw_saved_...` attributes hold what it saved."""

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]: ...
    @property
    def metadata(self) -> dict[str, list[str]]: ...
    @property
    def _input_metadata(self) -> list[torch.Tensor]: ...  # of tensors, these have only the shape and the dtype
    def name(self) -> str: ...
    def _sequence_nr(self) -> int: ...
    def register_hook(self, hook: Callable[[object, object], None]) -> RemovableHandle: ...
    def __call__(self, *gradients: torch.Tensor) -> object: ...


def nodes_of(
    roots: Sequence[torch.Tensor], limit: float = MAX_NODES, on_cut: Callable[[], None] | None = None
) -> Iterator[Node]:
    """Finds the nodes below `roots`, breadth first, each once. Calls `on_cut` if there are more than the limit."""
    queue: deque[Node] = deque()
    for root in roots:
        try:
            if root.grad_fn is not None:
                queue.append(root.grad_fn)  # type: ignore[arg-type]
        except RuntimeError:  # a view invalidated by a write to its base
            continue
    seen = set(queue)
    while queue and len(seen) < limit:
        node = queue.popleft()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
    if queue and on_cut is not None:
        on_cut()


def whole_graph(roots: Sequence[torch.Tensor]) -> list[Node] | None:
    """Returns the nodes below `roots`; None if they are more than `MAX_NODES`."""
    cut: list[bool] = []
    nodes = list(nodes_of(roots, on_cut=lambda: cut.append(True)))
    return None if cut else nodes


def leaves_below(
    starts: Iterable[Node], next_nodes: Callable[[Node], Iterable[Node | None]], visits: Counter[Node], most: int
) -> Iterator[torch.Tensor]:
    """Finds the leaves that nodes lead to, each once.

    `visits` counts in how many searches a node was met: one that was met in `most` of them is not searched again, nor
    what is only below it.
    """
    queue: deque[Node] = deque()
    seen: set[Node] = set()

    def visit(nodes: Iterable[Node | None]) -> None:
        for node in nodes:
            if node is not None and node not in seen and visits[node] < most:
                seen.add(node)
                visits[node] += 1
                queue.append(node)

    visit(starts)
    while queue:
        node = queue.popleft()
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.Tensor):
            yield leaf
        visit(next_nodes(node))


def is_cut(roots: Sequence[torch.Tensor]) -> bool:
    """Returns whether the graph has more nodes than `nodes_of` reads."""
    nodes = set(nodes_of(roots))
    return any(
        following is not None and following not in nodes for node in nodes for following, _ in node.next_functions
    )


def in_order_of_execution(
    roots: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor] = (), limit: float = MAX_NODES
) -> list[Node]:
    """Returns the nodes below `roots` in the order in which the engine runs them.

    Of the nodes whose users have all run, the engine takes the one made last. With `inputs`, only the nodes that lead
    to those tensors are returned.
    """
    nodes = list(nodes_of(roots, limit))
    users = Counter(following for node in nodes for following, _ in node.next_functions)
    ready = [(-node._sequence_nr(), place, node) for place, node in enumerate(nodes) if not users[node]]
    heapq.heapify(ready)
    order: list[Node] = []
    place = count(len(nodes))
    while ready:
        *_, node = heapq.heappop(ready)
        order.append(node)
        for following, _ in node.next_functions:
            users[following] -= 1
            if following is not None and not users[following]:
                heapq.heappush(ready, (-following._sequence_nr(), next(place), following))
    return _leading_to(order, inputs) if inputs else order


def _leading_to(order: list[Node], inputs: Sequence[torch.Tensor]) -> list[Node]:
    """Returns the nodes that a gradient passes on its way to one of `inputs`, in the same order."""
    leaves = {id(tensor) for tensor in inputs if tensor.is_leaf}
    wanted: set[object] = {tensor.grad_fn for tensor in inputs if not tensor.is_leaf}
    wanted.update([node for node in order if id(getattr(node, "variable", None)) in leaves])
    needed: set[object] = set()
    for node in reversed(order):
        if any(following in wanted or following in needed for following, _ in node.next_functions):
            needed.add(node)
    return [node for node in order if node in needed]


def raw_saved_of(node: Node) -> Iterator[tuple[str, object]]:
    """Finds (slot, SavedTensor or None) of every tensor that a node keeps, and of each item of lists of tensors.

    A RuntimeError in place of the SavedTensor says that the node is freed.
    """
    for name in _raw_names(type(node)):
        slot = "saved_tensors" if name == "_raw_saved_tensors" else name.removeprefix("_raw_saved_")
        try:
            raw = getattr(node, name)
        except RuntimeError as error:
            yield slot, error
            continue
        if isinstance(raw, tuple):
            for position, item in enumerate(raw):
                yield f"{slot}[{position}]", item if READS_DATA else Unchecked(node, name, item, position)
        else:
            yield slot, raw if READS_DATA or raw is None else Unchecked(node, name, raw)


def _raw_names(kind: type) -> tuple[str, ...]:
    """Returns the attributes of a type of node that hold what it saves. To list them takes long for a large graph."""
    names = _known_names.get(kind)
    if names is None:
        names = _known_names[kind] = tuple([name for name in dir(kind) if name.startswith("_raw_saved_")])
    return names


def raw_saved_in(node: Node, slot: str) -> object:
    """Returns the SavedTensor of one slot that holds a single tensor; None if there is none or it is freed."""
    name = f"_raw_saved_{slot}"
    try:
        raw = getattr(node, name, None)
    except RuntimeError:
        return None
    return raw if READS_DATA or raw is None else Unchecked(node, name, raw)


def packed_or_tensor(raw: object) -> object:
    """Returns the data of a SavedTensor without its version check: a tensor, or what a hook packed.

    Raises:
        RuntimeError: it is freed.
        AttributeError: it is no SavedTensor.
    """
    data: object = raw.data  # type: ignore[attr-defined]
    return data


def data_of(raw: object) -> torch.Tensor | None:
    """Returns the tensor of a SavedTensor without its version check; None if it is freed or packed by a hook."""
    try:
        data = packed_or_tensor(raw)
    except (RuntimeError, AttributeError):
        return None
    return data if isinstance(data, torch.Tensor) else None


def check_of(node: Node, slot: str) -> str | None:
    """Returns the message with which reading a saved tensor fails, or None."""
    try:
        getattr(node, "saved_tensors" if slot.startswith("saved_tensors[") else f"_saved_{slot.partition('[')[0]}")
    except RuntimeError as error:
        return str(error)
    except AttributeError:
        return None
    return None
