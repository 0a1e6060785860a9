"""Reads saved tensors without their version check where PyTorch offers no way to: its `SavedTensor` has no `data`.

An intact saved tensor is read as autograd reads it. One that fails its check is read by hooks that are registered on
it: PyTorch passes them the tensor unchecked. From then on it has no version check of its own, so the hooks check the
version and raise what PyTorch would raise.

What the program's own hooks packed is never read, because reading it would run them. A `SavedTensor` does not say
whether it has hooks, so this module remembers while which nodes were made default hooks were active.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from typing import Any

import torch

from tensorlens.tracer.isolation.torch_features import SAVED_TENSOR

READS_DATA = hasattr(SAVED_TENSOR, "data")
MAX_SPANS = 10_000
VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")
FREED = "Trying to backward through the graph a second time"
_next_sequence = torch._C._autograd._get_sequence_nr
_PACKED = "packed by a hook"
_unchecked = threading.local()  # `reads` is set while this module reads a tensor that it has registered hooks on


class HookedNodes:
    """Remembers the sequence numbers of the nodes that were made while default saved-tensor hooks were active."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []  # (first, end), in order
        self._open: list[int] = []  # the sequence number at each push
        self._forgotten = 0  # of nodes before this one nothing is known
        self.registers = False  # the program registers hooks on saved tensors itself

    def push(self) -> None:
        """Notes that hooks become active."""
        self._open.append(_next_sequence())

    def pop(self) -> None:
        """Notes that the latest hooks are no longer active."""
        if not self._open:
            return
        first = self._open.pop()
        if self._open or first == _next_sequence():
            return
        self._spans.append((first, _next_sequence()))
        if len(self._spans) > MAX_SPANS:
            self._forgotten = max(end for _, end in self._spans[: MAX_SPANS // 2])
            del self._spans[: MAX_SPANS // 2]

    def may_have(self, sequence: int) -> bool:
        """Returns whether the node with this number may have been made under hooks."""
        if self.registers or sequence < self._forgotten or (self._open and sequence >= self._open[0]):
            return True
        place = bisect_right(self._spans, (sequence, 2**64))
        return place > 0 and sequence < self._spans[place - 1][1]


hooked_nodes = HookedNodes()


class Unchecked:
    """A `SavedTensor` together with the node that keeps it, with the `data` that a later PyTorch gives it."""

    __slots__ = ("_name", "_node", "_position", "_raw")

    def __init__(self, node: Any, raw_name: str, raw: Any, position: int | None = None) -> None:
        self._node, self._raw, self._position = node, raw, position
        self._name = "saved_tensors" if raw_name == "_raw_saved_tensors" else raw_name.replace("_raw", "", 1)

    @property
    def data(self) -> torch.Tensor | None:
        """The tensor; None if nothing was saved, or if it is freed.

        Raises:
            RuntimeError: a hook packed it.
        """
        if hooked_nodes.may_have(self._node._sequence_nr()):
            raise RuntimeError(_PACKED)
        try:
            return self._read()
        except RuntimeError as error:
            versions = VERSIONS.search(str(error))
            if FREED in str(error):
                return None
            if versions is None:
                raise
            return self._behind_the_check(str(error), versions)

    def _read(self) -> torch.Tensor | None:
        value: Any = getattr(self._node, self._name)
        found: torch.Tensor | None = value if self._position is None else value[self._position]
        return found

    def _behind_the_check(self, message: str, versions: re.Match[str]) -> torch.Tensor | None:
        now, saved = (int(number) for number in versions.groups())
        found: list[torch.Tensor] = []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            found.append(tensor)
            return tensor

        def unpack(tensor: torch.Tensor) -> torch.Tensor:
            with torch._C.DisableTorchFunction():
                version = tensor._version
            if hasattr(_unchecked, "reads") or version == expected:
                return tensor
            raise RuntimeError(f"{message[: versions.start(1)]}{version}{message[versions.end(1) :]}")

        try:
            self._raw.register_hooks(pack, unpack)
        except RuntimeError:  # an earlier call has registered them
            return self._read_registered()
        tensor = found.pop()
        expected = saved if tensor._version == now else tensor._version  # else another tensor of the node fails
        return tensor

    def _read_registered(self) -> torch.Tensor | None:
        _unchecked.reads = True
        try:
            return self._read()
        finally:
            del _unchecked.reads
