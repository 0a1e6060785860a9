"""Knows where releases of PyTorch differ. It asks the PyTorch that is imported what it has, not for its version.

A name that no known release has is left as it is: installing its patch fails, and the report says so.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint

_checkpoints: Any = torch.utils.checkpoint


def _first_name(owner: object, *names: str) -> str:
    """Returns the first of the names that `owner` has, and the last if it has none."""
    return next((name for name in names if hasattr(owner, name)), names[-1])


# --- checkpoints ----------------------------------------------------------------------------------------------------

CHECKPOINT_RUN = _first_name(
    _checkpoints, "_checkpoint_without_reentrant_generator_impl", "_checkpoint_without_reentrant_generator"
)
"""The generator around the first run of a checkpointed function, whose first parameter is the function."""

CHECKPOINT_CALL = _first_name(_checkpoints, "_checkpoint_impl", "checkpoint")
"""The function that every call of `checkpoint` and every checkpointed function goes through."""


def checkpointed_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns what a call of `CHECKPOINT_CALL`, given its arguments after the function, passes to the function."""
    if CHECKPOINT_CALL != "checkpoint":
        return args[0], args[1]
    return args, without_checkpoint_options(kwargs)


def without_checkpoint_options(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns those of the arguments of `checkpoint` that it passes to its function."""
    return {name: value for name, value in kwargs.items() if name not in _CHECKPOINT_OPTIONS}


_options = inspect.signature(_checkpoints.checkpoint).parameters
_CHECKPOINT_OPTIONS = {
    "preserve_rng_state",
    *(name for name, option in _options.items() if option.kind is option.KEYWORD_ONLY),
}


def marks_own_hooks(pack: object) -> bool:
    """Returns whether a pack hook is a checkpoint's own and says so. Earlier releases have no such mark."""
    return getattr(pack, "_checkpoint_internal", False) is True


# --- saved tensors --------------------------------------------------------------------------------------------------

SAVED_TENSOR: Any = getattr(torch._C._autograd, "SavedTensor", None)
"""The type of the `_raw_saved_...` attributes of a node. Without a `data`, `saved_tensors/unchecked.py` reads it."""

# --- function transforms --------------------------------------------------------------------------------------------

TRANSFORMS = frozenset(name for name, value in vars(torch.func).items() if inspect.isfunction(value))
"""The names of `torch.func`, which not every release lists in `__all__`."""

# --- devices --------------------------------------------------------------------------------------------------------

ONLY_CPU = not torch.backends.cuda.is_built() and torch.accelerator.current_accelerator() is None
"""Whether this PyTorch is built without support for any device.

Which devices there are is not asked: PyTorch would start CUDA to answer. After that, a fork of the program could not
use CUDA, and a later change of `CUDA_VISIBLE_DEVICES` would have no effect.
"""

# --- memory ---------------------------------------------------------------------------------------------------------

Count = Callable[..., int] | None  # None: this PyTorch does not have it
USES_OF_TENSOR: Count = getattr(torch._C.TensorBase, "_use_count", None)  # by Python and C++
USES_OF_STORAGE: Count = getattr(torch._C, "_storage_Use_Count", None)  # its tensors and its Python object
HASH: Callable[..., torch.Tensor] | None = getattr(torch, "hash_tensor", None)

StorageReference = Callable[[], torch.UntypedStorage | None]
"""Gives a storage without keeping it alive; None if it is freed."""


class _CountedReference:
    """A weak reference to a storage, which PyTorch's C++ side counts."""

    __slots__ = ("_address",)

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self._address = storage._weak_ref()

    def __call__(self) -> torch.UntypedStorage | None:
        storage: torch.UntypedStorage | None = torch.UntypedStorage._new_with_weak_ptr(self._address)
        return storage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CountedReference) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __del__(self) -> None:
        torch.UntypedStorage._free_weak_ref(self._address)


def _outlives_its_memory() -> bool:
    """Returns whether Python's weak references still give a storage that is freed, if C++ has a weak reference to it.

    To use that storage crashes the process.
    """
    tensor = torch._C._VariableFunctions.zeros(1)
    storage = torch._C.TensorBase.untyped_storage(tensor)
    by_python, by_cpp = weakref.ref(storage), _CountedReference(storage)
    del storage, tensor
    return by_cpp() is None and by_python() is not None


refer_to: Callable[[torch.UntypedStorage], StorageReference] = (
    _CountedReference if _outlives_its_memory() else weakref.ref
)
"""Makes a reference to a storage."""
