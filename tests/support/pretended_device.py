"""Makes a device that computes shapes and no values, and counts what is asked of it.

A read of a tensor there raises, as it does on `meta`. Unlike `meta`, it is a device that PyTorch takes for a real one.
Registering it changes the process: only a process of its own imports this module.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils import backend_registration
from torch.utils._pytree import tree_map

NAME = "pretended"
READS = {"aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero"}
asked: Counter[str] = Counter()
broken = ""  # the message that every kernel raises
_libraries: list[torch.library.Library] = []


class ReadError(RuntimeError):
    """A tensor on the device was read."""


def _is_there(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def _empty(shape: Any, dtype: Any) -> torch.Tensor:
    return torch._C._acc.create_empty_tensor(tuple(shape), dtype)


def _fallback(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Runs a kernel: its shapes are those of the same kernel on `meta`."""
    name = op._schema.name
    asked[name] += 1
    if broken:
        raise RuntimeError(broken)
    if name in READS:
        raise ReadError(name)
    there: dict[int, torch.Tensor] = {}

    def to_meta(value: Any) -> Any:
        if _is_there(value):
            twin = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            there[id(twin)] = value
            return twin
        if isinstance(value, torch.Tensor):
            return value.to("meta")
        return torch.device("meta") if isinstance(value, torch.device) else value

    def back(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return there[id(value)] if id(value) in there else _empty(value.shape, value.dtype)

    twins = tree_map(to_meta, (args, kwargs))
    return tree_map(back, op(*twins[0], **twins[1]))


def _strided(self: torch.Tensor, size: Any, stride: Any, offset: Any = None) -> torch.Tensor:
    return _empty(size, self.dtype)


def _new(size: Any, *_: Any, dtype: Any = None, **__: Any) -> torch.Tensor:
    asked["aten::empty"] += 1
    return _empty(size, dtype or torch.get_default_dtype())


def _copy(self: torch.Tensor, to: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    asked["aten::_copy_from"] += 1
    if not _is_there(to):
        raise ReadError("aten::_copy_from")
    return to


class _Module(backend_registration._DummyBackendModule):
    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16]


def register() -> None:
    """Registers the device and its kernels."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, _Module())
    every = torch.library.Library("_", "IMPL")
    every.fallback(_fallback, "PrivateUse1")
    aten = torch.library.Library("aten", "IMPL")
    aten.impl("as_strided", _strided, "PrivateUse1")
    aten.impl("empty.memory_format", _new, "PrivateUse1")
    aten.impl("empty_strided", _new, "PrivateUse1")
    aten.impl("_copy_from", _copy, "PrivateUse1")
    _libraries.extend((every, aten))
