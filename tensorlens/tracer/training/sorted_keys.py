"""Counts the neighbours among the keys of a sort that are in its order already: it may leave all in their place.

Of the order that it makes, it counts the places that the order moves although it is taken twice.
"""

from __future__ import annotations

from types import FrameType

import torch

from tensorlens.records.training_values import OrderTwice, SortedKeys
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import arange, count_nonzero, gather, not_equal, numel, reshape
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.rare_looks import RareLooks

_MOST_KEYS = 1 << 16
_COMPLEX = (torch.complex64, torch.complex128, torch.complex32)


class OrderedKeys:
    """Looks at the keys of one row: the first times that a line sorts, the 8th time, the 16th and so on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._looks, self._order_looks = RareLooks(), RareLooks()

    def look(self, keys: object, descending: bool, frame: FrameType | None) -> None:
        """Writes a fact about the sort that begins."""
        if frame is None or not isinstance(keys, torch.Tensor):
            return
        if not self._looks.is_due(frame):
            return
        if not is_measurable(keys) or keys.dtype in _COMPLEX or max(keys.shape, default=0) != numel(keys):
            return
        if not 2 <= numel(keys) <= _MOST_KEYS:
            return
        with self._recorder.quiet():
            row = reshape(keys.detach(), (-1,))
            risen, fallen = (int(count_nonzero(each)) for each in (row[1:] > row[:-1], row[1:] < row[:-1]))
        self._recorder.rows.write_fact(SortedKeys, *((fallen, risen) if descending else (risen, fallen)))

    def look_at_order(self, result: object, axis: object, frame: FrameType | None) -> None:
        """Writes a fact about the order that a sort or `randperm()` has made."""
        order = result[-1] if isinstance(result, tuple) and len(result) == 2 else result
        if frame is None or not isinstance(order, torch.Tensor) or not self._order_looks.is_due(frame):
            return
        if not is_measurable(order) or order.dtype is not torch.int64 or not 2 <= numel(order) <= _MOST_KEYS:
            return
        place = axis % order.ndim if type(axis) is int else order.ndim - 1
        with self._recorder.quiet():
            sizes = [-1 if each == place else 1 for each in range(order.ndim)]
            first = reshape(arange(order.shape[place], device=order.device), sizes)
            moved = int(count_nonzero(not_equal(gather(order, place, order), first)))
        number = self._recorder.tensor_ids.id_of(order)
        self._recorder.rows.write_fact(OrderTwice, number, place, moved)
