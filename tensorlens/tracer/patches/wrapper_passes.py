"""Follows the passes through one `DistributedDataParallel` wrapper: its inputs, and the parameters that backward
arrives at."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch

from tensorlens.tracer.patches.replica_values import NOT_COMPUTED, value_numbers

ALL_NOTED = 20  # steps and passes from the first; of later ones those whose number has one digit that is not 0
_MOST_INPUTS = 16  # tensors


def is_noted(number: int) -> bool:
    """Returns whether the facts of a step or pass are written, by its number."""
    return number <= ALL_NOTED or not str(number).rstrip("0")[1:]


class WrapperPasses:
    """Counts the passes through one wrapper. It keeps no tensor alive."""

    def __init__(self) -> None:
        self.forwards = self.backwards = 0
        self._fired: set[int] = set()
        self._watched: frozenset[int] = frozenset()
        self._handles: list[Any] = []

    def inputs(self, values: Iterable[object]) -> tuple[int, tuple[int, ...]]:
        """Counts a forward pass. Returns its number, and the numbers of its inputs if they are noted and known."""
        self.forwards += 1
        if not is_noted(self.forwards):
            return self.forwards, ()
        tensors = _tensors(values, [])
        numbers = value_numbers(tensors) if 0 < len(tensors) <= _MOST_INPUTS else ()
        return self.forwards, () if NOT_COMPUTED in numbers else numbers

    def watch(self, nodes: dict[int, Any]) -> None:
        """Sees when backward arrives at nodes that accumulate gradients, by the positions of their parameters."""
        self._watched = frozenset(nodes)
        self._handles = [node.register_prehook(partial(self._fire, position)) for position, node in nodes.items()]

    def _fire(self, position: int, _: object) -> None:
        self._fired.add(position)

    def begin(self) -> None:
        self._fired.clear()

    def end(self) -> tuple[int, tuple[int, ...]] | None:
        """Counts a backward pass. Returns its number, and the nodes that it did not arrive at; None if it is not
        followed."""
        if not self._handles:
            return None
        self.backwards += 1
        missed = tuple(sorted(self._watched - self._fired))
        if self.backwards == ALL_NOTED:
            for handle in self._handles:
                handle.remove()
            self._handles = []
        return self.backwards, missed


def _tensors(values: Iterable[object], found: list[torch.Tensor]) -> list[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            _tensors(value, found)
        elif isinstance(value, dict):
            _tensors(value.values(), found)
    return found
