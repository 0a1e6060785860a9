"""Reads how much memory the nodes of graphs have saved, without a version check and without a hook of the program."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence

import torch

from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_features import USES_OF_TENSOR
from tensorlens.tracer.isolation.torch_originals import as_strided, ones, untyped_storage
from tensorlens.tracer.saved_tensors.graph import LEAF_SEQUENCE, data_of, nodes_of, raw_saved_of
from tensorlens.tracer.saved_tensors.unchecked import READS_DATA

MOST_READ = 5_000  # nodes at one look
MOST_CUT = 3  # looks that find more: freeing a chain of very many nodes that Python has read can overflow the stack


class SavedMemory:
    """Reads graphs, and no more once it has found too many large ones."""

    def __init__(self) -> None:
        self._cut = 0
        self.is_complete = True  # the last time, all nodes were read

    @property
    def may_read(self) -> bool:
        return READS_DATA and self._cut < MOST_CUT

    def read(self, roots: Sequence[torch.Tensor]) -> dict[int, tuple[int, int]]:
        """Returns what the nodes below `roots` have saved: the address of each storage -> (the sequence number of the
        first node that saved it, bytes)."""
        found: dict[int, tuple[int, int]] = {}
        self.is_complete = self.may_read or not roots
        for node in nodes_of(roots, MOST_READ, self._note_cut) if self.may_read else ():
            sequence = node._sequence_nr()
            for _, raw in raw_saved_of(node) if sequence < LEAF_SEQUENCE else ():
                data = None if raw is None else data_of(raw)
                if data is not None and type(data) in (torch.Tensor, torch.nn.Parameter) and is_measurable(data):
                    storage = untyped_storage(data)
                    known = found.get(storage._cdata)
                    if known is None or sequence < known[0]:
                        found[storage._cdata] = sequence, storage.nbytes()
        return found

    def _note_cut(self) -> None:
        self._cut += 1
        self.is_complete = False


class ObjectCounts:
    """Finds out whether Python code holds a tensor, or only the C++ side of PyTorch.

    The C++ side keeps the Python object of a tensor as long as it uses the tensor. In some releases that is one of the
    references that Python counts. In others the counts don't show it: then each tensor counts as held.
    """

    def __init__(self) -> None:
        base = ones((0,), device="cpu")
        view, ref = as_strided(base, (0,), (1,)), weakref.ref(base)  # C++ keeps the base of a view
        held = _references(ref)
        del base
        self._unheld = _references(ref)
        self._shows_c = view._base is not None and held == self._unheld + 1

    def is_held(self, ref: weakref.ref[torch.Tensor]) -> bool:
        """Returns whether Python code holds a tensor that is alive."""
        if not self._shows_c or USES_OF_TENSOR is None or _references(ref) > self._unheld:
            return True
        tensor = ref()
        return tensor is not None and USES_OF_TENSOR(tensor) == 1  # C++ does not use it


def _references(ref: weakref.ref[torch.Tensor]) -> int:
    tensor = ref()
    return 0 if tensor is None else sys.getrefcount(tensor)
