"""Counts the memory of live tensors at a few optimizer steps: the 1st, 2nd, 4th, 8th and so on."""

from __future__ import annotations

import torch

from tensorlens.records.training import HeldMemory
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import untyped_storage
from tensorlens.tracer.recording.recorder import Recorder

MOST = 3_000  # blocks of memory in one row


class LiveMemory:
    """Looks at the live tensors of a run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._before = 0  # tensors that were met before the last step have smaller ids

    def step(self, number: int) -> None:
        """Notes the beginning of a step, and looks at memory if it is one of the few."""
        if number & (number - 1) == 0:
            self._look(number)
        self._before = next(self._recorder.tensor_ids.numbers)

    def _look(self, step: int) -> None:
        blocks: dict[
            int, tuple[int, int, bool]
        ] = {}  # storage -> the first tensor on it, bytes, whether one has a graph
        for ref, number, _, storage in sorted(self._recorder.tensor_ids.known.values(), key=lambda entry: entry[1]):
            tensor = ref()
            if tensor is not None and type(tensor) in (torch.Tensor, torch.nn.Parameter) and is_measurable(tensor):
                has_graph = tensor._base is None and tensor.requires_grad and not tensor.is_leaf
                first, size, known = blocks.get(storage, (number, -1, False))
                size = untyped_storage(tensor).nbytes() if size < 0 else size
                blocks[storage] = first, size, known or has_graph
        last = list(blocks.values())[-MOST:]
        self._recorder.rows.write_fact(
            HeldMemory,
            step,
            len(blocks),
            sum(size for _, size, _ in blocks.values()),
            tuple(number for number, _, _ in last),
            tuple(size for _, size, _ in last),
            sum(number < self._before for number, _, _ in last),
            tuple(number for number, _, has_graph in last if has_graph),
        )
