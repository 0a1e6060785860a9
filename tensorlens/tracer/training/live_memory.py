"""Counts the memory of live tensors, and what graphs hold besides, at a few steps: the 1st, 2nd, 4th, 8th and so on.

Before such a step, it also looks at the beginning of some of the backward passes: graphs hold most then.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tensorlens.records.training import HeldMemory
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import untyped_storage
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.saved_memory import ObjectCounts, SavedMemory

MOST = 3_000  # blocks of memory in one row
_MOST_NODES = 200  # in one row


@dataclass(slots=True)
class _Block:
    first: int  # the first tensor on it
    size: int  # bytes
    address: int  # of PyTorch's storage
    has_graph: bool = False
    is_held: bool = False  # a Python object has a tensor on it


class LiveMemory:
    """Looks at the memory of a run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._saved = SavedMemory()
        self._objects: ObjectCounts | None = None
        self._before = 0  # tensors that were met before the last step have smaller ids
        self._begun = 0  # backward passes
        self._since = 0  # of these, those since the last step

    def step(self, number: int) -> None:
        """Notes the beginning of a step, and looks at memory if it is one of the few."""
        if number & (number - 1) == 0:
            self._look(number, 0, ())
        self._before = next(self._recorder.tensor_ids.numbers)
        self._since = 0

    def pass_begins(self, roots: Sequence[torch.Tensor], step: int) -> None:
        """Looks at memory before the 1st, 2nd, 4th pass and so on before one of the few steps. `step` is the next."""
        self._begun += 1
        self._since += 1
        if step & (step - 1) == 0 and self._since & (self._since - 1) == 0 and self._saved.may_read:
            self._look(step, self._begun, roots)

    def _look(self, step: int, begun: int, roots: Sequence[torch.Tensor]) -> None:
        blocks, others, graphs = self._blocks()
        held = {block.address for block in blocks if block.is_held} | others
        saved = self._saved.read([*roots, *graphs])
        alone = {address: found for address, found in saved.items() if address not in held}
        of_node: dict[int, int] = defaultdict(int)
        for sequence, size in alone.values():
            of_node[sequence] += size
        nodes = heapq.nlargest(_MOST_NODES, of_node.items(), key=lambda pair: pair[1])
        live = [block for block in blocks if block.address not in alone]
        last = blocks[-MOST:]
        self._recorder.rows.write_fact(
            HeldMemory,
            step,
            begun,
            len(live),
            sum(block.size for block in live),
            tuple(block.first for block in last),
            tuple(block.size for block in last),
            sum(block.first < self._before for block in last),
            tuple(block.first for block in last if block.has_graph),
            tuple(block.first for block in last if block.address in alone),
            sum(of_node.values()),
            tuple(sequence for sequence, _ in nodes),
            tuple(size for _, size in nodes),
            self._saved.is_complete,
        )

    def _blocks(self) -> tuple[list[_Block], set[int], list[torch.Tensor]]:
        """Returns the blocks of plain tensors, the addresses of other storages that the program holds, and the tensors
        with a graph that Python code holds."""
        objects = self._objects = self._objects or ObjectCounts()
        blocks: dict[int, _Block] = {}
        others: set[int] = set()
        graphs: list[torch.Tensor] = []
        for ref, number, _, storage in sorted(self._recorder.tensor_ids.known.values(), key=lambda entry: entry[1]):
            is_held = objects.is_held(ref)
            tensor = ref()
            if tensor is None or not is_measurable(tensor):
                continue
            if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
                others.add(untyped_storage(tensor)._cdata)
                continue
            block = blocks.get(storage)
            if block is None:
                memory = untyped_storage(tensor)
                block = blocks[storage] = _Block(number, memory.nbytes(), memory._cdata)
            block.is_held |= is_held
            if tensor._base is None and tensor.requires_grad and not tensor.is_leaf:
                block.has_graph = True
                if is_held:
                    graphs.append(tensor)
        return list(blocks.values()), others | self._gradients(), graphs

    def _gradients(self) -> set[int]:
        """Returns the addresses of the gradients: a program reaches them through their leaves."""
        leaves = [leaf for ref in self._recorder.leaves.values() if (leaf := ref()) is not None]
        plain = [leaf for leaf in leaves if leaf.is_leaf or leaf.retains_grad]
        gradients = [gradient for leaf in plain if (gradient := leaf.grad) is not None and is_measurable(gradient)]
        return {untyped_storage(gradient)._cdata for gradient in gradients}
