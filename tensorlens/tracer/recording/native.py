"""Finds the functions of PyTorch by which the compiled fast path reads facts of a tensor, and tries them out.

Most are of PyTorch's C interface (`torch/csrc/inductor/aoti_torch/c/shim.h`), three are C++ functions without a C name.
A PyTorch that lacks one of them, or whose functions answer otherwise than Python's attributes of the same tensors, is
recorded in Python.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import torch

from tensorlens.tracer.isolation.torch_features import USES_OF_STORAGE, USES_OF_TENSOR

if TYPE_CHECKING:
    from types import ModuleType

_next_sequence = torch._C._autograd._get_sequence_nr
_FUNCTIONS = (
    "aoti_torch_get_dim",
    "aoti_torch_get_sizes",
    "aoti_torch_get_dtype",
    "aoti_torch_get_device_type",
    "aoti_torch_get_device_index",
    "aoti_torch_get_data_ptr",
    "aoti_torch_get_storage_size",
    "_ZN3c108GradMode10is_enabledEv",  # c10::GradMode::is_enabled
    "_ZN2at15sequence_number4peekEv",  # at::sequence_number::peek
    "_ZN5torch8autograd4impl15version_counterERKN2at6TensorE",  # torch::autograd::impl::version_counter
)
_WORD = ctypes.sizeof(ctypes.c_void_p)
_SEARCHED = 8 * _WORD  # the storage is among the first members of a C++ tensor
_VERSION_AT = 2 * _WORD  # in a version counter, after its table of virtual functions and its counts of references


def bind(module: ModuleType) -> bool:
    """Gives the compiled module the functions. Returns whether they are there and answer correctly."""
    addresses = _addresses()
    samples = _samples()
    place = _place_of_tensor(samples)
    if addresses is None or place is None:
        return False
    module.bind(samples[0], addresses, place, _VERSION_AT, _place_of_storage(samples))
    return all(_is_right(module.facts(tensor), tensor) for tensor in samples)


def _addresses() -> tuple[int, ...] | None:
    """Returns the addresses of the functions; None if one is missing."""
    try:
        library = ctypes.CDLL(torch._C.__file__)  # finds what the libraries that it loads have, too
        found = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _FUNCTIONS]
    except (OSError, AttributeError, TypeError):
        return None
    return tuple(address for address in found if address is not None)


def _samples() -> list[torch.Tensor]:
    """Makes tensors of several kinds, with versions from 0 to 300."""
    make = torch._C._VariableFunctions
    with torch._C.DisableTorchFunction(), torch.no_grad():
        plain = make.zeros(2, 3)
        written = make.zeros(4, dtype=torch.int64)
        for _ in range(300):
            written.add_(1)
        leaf = torch.nn.Parameter(make.ones(1, 5))
        leaf.mul_(2)
        return [plain, written, leaf, written[1:], leaf.t(), make.zeros(()), make.empty(7, 0), plain.to("meta")]


def _place_of_tensor(samples: list[torch.Tensor]) -> int | None:
    """Finds where the Python object of a tensor has the C++ one; None if that is not at one place in all samples."""
    places = range(object.__basicsize__, torch._C.TensorBase.__basicsize__, _WORD)
    for place in places:
        if all(ctypes.c_void_p.from_address(id(tensor) + place).value == tensor._cdata for tensor in samples):
            return place
    return None


def _place_of_storage(samples: list[torch.Tensor]) -> int:
    """Finds where a C++ tensor has its storage; 0 if that is not at one place in all samples.

    It is 0, too, if the use counts of tensors and storages are not where the fast path reads them.
    """
    if USES_OF_TENSOR is None or USES_OF_STORAGE is None:
        return 0
    kept = [(tensor, torch._C.TensorBase.untyped_storage(tensor)) for tensor in samples]
    for tensor, storage in kept:
        uses = USES_OF_TENSOR(tensor), USES_OF_STORAGE(storage._cdata)
        if uses != tuple(map(_uses_at, (tensor._cdata, storage._cdata))):
            return 0
    for place in range(2 * _WORD, _SEARCHED, _WORD):
        if all(ctypes.c_void_p.from_address(tensor._cdata + place).value == storage._cdata for tensor, storage in kept):
            return place
    return 0


def _uses_at(address: int) -> int:
    """Returns the use count of a C++ object: the lower half of the word after its table of virtual functions."""
    return ctypes.c_uint32.from_address(address + _WORD).value


def _is_right(facts: dict[str, object], tensor: torch.Tensor) -> bool:
    """Returns whether the functions say of a tensor what Python's attributes do."""
    known = {
        "plain": True,
        "version": tensor._version,
        "nbytes": torch._C.TensorBase.untyped_storage(tensor).nbytes(),
        "address": torch._C.TensorBase.data_ptr(tensor),
        "shape": list(tensor.shape),
        "grad_enabled": torch.is_grad_enabled(),
        "sequence": _next_sequence(),
    }
    kind = facts["dtype"], facts["device"]
    return {name: facts[name] for name in known} == known and kind == _kind_of(tensor)


def _kind_of(tensor: torch.Tensor) -> tuple[int, int]:
    """Returns PyTorch's numbers of a tensor's dtype and device."""
    dtype: int = {torch.int64: 4, torch.float32: 6}[tensor.dtype]
    return dtype, 14 if tensor.is_meta else 0
