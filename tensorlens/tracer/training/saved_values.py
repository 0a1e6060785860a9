"""Reads single values that nodes of a graph have saved: tensors in main memory, and dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from tensorlens.tracer.isolation.readable import is_in_main_memory, is_measurable
from tensorlens.tracer.isolation.torch_originals import detach, numel
from tensorlens.tracer.saved_tensors.graph import Node, data_of, raw_saved_in

MOST_ELEMENTS = 1 << 20
Named = dict[str, list[Node]]
"""The nodes of a graph by their names."""


def saved(node: Node, slot: str) -> torch.Tensor | None:
    """Returns the tensor of a slot; None if it is freed, packed, large or not in main memory."""
    return _readable(data_of(raw_saved_in(node, slot)))


def saved_indices(node: Node) -> list[torch.Tensor | None]:
    """Returns the indices that `x[rows, columns]` has saved, None for each dimension that has none."""
    attributes: Any = node
    try:
        raw = attributes._raw_saved_indices
    except (AttributeError, RuntimeError):
        return []
    return [_readable(data_of(each)) for each in raw] if isinstance(raw, tuple) else []


def _readable(tensor: torch.Tensor | None) -> torch.Tensor | None:
    if tensor is None or not is_measurable(tensor) or not is_in_main_memory(tensor):
        return None
    return detach(tensor) if numel(tensor) <= MOST_ELEMENTS else None


def saved_number(node: Node, name: str) -> int | None:
    """Returns a dimension or a place that a node has saved; a negative one is saved without its sign."""
    value = getattr(node, f"_saved_{name}", None)
    if isinstance(value, tuple) and len(value) == 1:
        (value,) = value
    if type(value) is not int:
        return None
    return value if value < 1 << 63 else value - (1 << 64)


def saved_sizes(node: Node, name: str = "self") -> tuple[int, ...]:
    return tuple(int(each) for each in getattr(node, f"_saved_{name}_sym_sizes", ()))


def of_names(named: Named, names: Iterable[str]) -> Iterator[Node]:
    for name in names:
        yield from named.get(name, ())


def below(node: Node) -> list[Node]:
    return [each for each, _ in node.next_functions if each is not None]
