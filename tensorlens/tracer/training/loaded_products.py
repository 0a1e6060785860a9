"""Compares the values that modules load with live tensors of the same shape, as the states of trained copies are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import isfinite

import torch

from tensorlens.records.training_values import LoadedProducts
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import numel, reshape, to
from tensorlens.tracer.recording.recorder import Recorder

_LOOKS = frozenset((2, 3, 4, 6))  # runs of a line that are looked at: the first may load a checkpoint
_MOST_LINES = 32
_MOST_ELEMENTS = 1 << 14
_MOST_TENSORS = 40
_FLOATS = (torch.float32, torch.float64)


class ProductsOfLoads:
    """Looks at a few loads of each line."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._runs = Counter[int]()

    def look(self, module: torch.nn.Module, state: Mapping[str, object], site: int | None) -> None:
        """Writes a fact about the largest parameter of a module that begins to load a dict."""
        if site is None or (site not in self._runs and len(self._runs) >= _MOST_LINES):
            return
        self._runs[site] += 1
        if self._runs[site] not in _LOOKS:
            return
        own = [(name, each) for name, each in module.named_parameters() if _is_read(state.get(name), each)]
        if not own:
            return
        name, target = max(own, key=lambda pair: numel(pair[1]))
        loaded = state[name]
        assert isinstance(loaded, torch.Tensor)
        with self._recorder.quiet(), torch.no_grad():
            self._write(target, loaded, site)

    def _write(self, target: torch.Tensor, loaded: torch.Tensor, site: int) -> None:
        ids = self._recorder.tensor_ids
        leaves = [leaf for ref in self._recorder.leaves.values() if (leaf := ref()) is not None]
        gradients = {id(leaf.grad) for leaf in leaves if leaf.is_leaf or leaf.retains_grad}
        others = {
            each.data_ptr(): (number, each)
            for number, each in reversed(ids.live())
            if id(each) not in gradients and _is_read(each, loaded)
        }
        others.pop(loaded.data_ptr(), None)
        number = ids.find(loaded)
        if number is None or not 2 <= len(others) <= _MOST_TENSORS:
            return
        found = [(number, loaded), *others.values()]
        rows = torch.stack(
            [to(reshape(each.detach(), (-1,))[:_MOST_ELEMENTS], "cpu", torch.float64) for _, each in found]
        )
        products = (rows @ rows.T).tolist()
        above = tuple(value for place, row in enumerate(products) for value in row[place:])
        if all(map(isfinite, above)):
            numbers = tuple(each for each, _ in found)
            self._recorder.rows.write_fact(LoadedProducts, site, ids.id_of(target), numbers, above)


def _is_read(tensor: object, other: torch.Tensor) -> bool:
    """Returns whether a tensor has a shape, a dtype and a device that another one has, and can be read in order."""
    if not isinstance(tensor, torch.Tensor) or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return False
    is_same = tensor.shape == other.shape and tensor.dtype == other.dtype and tensor.device == other.device
    return is_same and tensor.dtype in _FLOATS and is_measurable(tensor) and tensor.is_contiguous()
