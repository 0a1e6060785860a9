"""Computes each op of an eager run in double precision as well, beside the program, to judge what rounding explains.

The program runs as it is: in its own precision, with its own branches and random numbers. Each storage of floats has a
twin in double precision with the same layout, so a view of the storage is the same view of its twin. An op that the
mode sees runs a second time on the twins of its arguments. What draws random numbers, or does not run in double
precision, gives the twin the program's own values, and so does memory that something else has written since.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.muted_dispatch import has_torch_dispatch
from tensorlens.tracer.isolation.torch_features import StorageReference, refer_to
from tensorlens.tracer.recording.recorder import Recorder

MOST = 512 * 1024 * 1024  # bytes of all twins
_WIDER = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}


class _Twin:
    """The twin of a storage, with the program's values as the mode has last seen them."""

    __slots__ = ("seen", "storage", "values")

    def __init__(self, storage: StorageReference, values: torch.Tensor, seen: torch.Tensor) -> None:
        self.storage, self.values, self.seen = storage, values, seen


class DoublePrecision(TorchDispatchMode):
    """Keeps the twins. To be entered below the program's own modes."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._guard = ErrorGuard(recorder, "double precision")
        self._recorder = recorder
        self._twins: dict[int, _Twin] = {}
        self._left = MOST
        self.is_whole = True  # every storage has had room for a twin

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        again: Callable[[], Any] | None = None
        if not self._recorder.paused:
            with self._guard:
                again = self._prepared(func, args, kwargs)
        result = func(*args, **kwargs)
        if not self._recorder.paused:
            with self._guard:
                self._follow(result, again, (*tree_leaves(args), *tree_leaves(kwargs)))
        return result

    def twin_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Returns a tensor in double precision, if it has been computed so; else None."""
        if tensor.dtype not in _WIDER or not _is_plain(tensor):
            return None
        twin = self._known(tensor)
        return None if twin is None else _view(twin.values, tensor)

    def _prepared(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
        """Returns what runs an op on twins; None for one that draws random numbers or has no floats."""
        if torch.Tag.nondeterministic_seeded in func.tags:
            return None
        wide_args, wide_kwargs = tree_map(self._widened, args), tree_map(self._widened, kwargs)
        return lambda: func(*wide_args, **wide_kwargs)

    def _widened(self, value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return _WIDER.get(value, value)
        if not isinstance(value, torch.Tensor) or value.dtype not in _WIDER:
            return value
        if not _is_plain(value):
            raise TypeError("a tensor without a twin")
        twin = self._known(value) or self._made(value)
        return _view(twin.values, value)

    def _known(self, tensor: torch.Tensor) -> _Twin | None:
        """Returns the twin of a tensor's storage if nothing else has written to the storage since."""
        storage = tensor.untyped_storage()
        twin = self._twins.get(storage._cdata)
        if twin is None:
            return None
        known = twin.storage()
        if known is None or known._cdata != storage._cdata or twin.seen.dtype != tensor.dtype:
            return None
        whole = _whole(tensor)
        is_same = whole.numel() == twin.seen.numel() and _same_bits(whole, twin.seen)
        return twin if is_same else None

    def _made(self, tensor: torch.Tensor) -> _Twin:
        """Makes a twin with the program's values."""
        whole = _whole(tensor)
        storage = tensor.untyped_storage()
        old = self._twins.pop(storage._cdata, None)
        self._left += 0 if old is None else 12 * old.seen.numel()
        if self._left < 12 * whole.numel():
            self._forget_freed()
        self._left -= 12 * whole.numel()
        if self._left < 0:
            self.is_whole = False
            raise MemoryError("no room for another twin")
        twin = _Twin(refer_to(storage), whole.to(_WIDER[tensor.dtype]), whole.clone())
        self._twins[storage._cdata] = twin
        return twin

    def _forget_freed(self) -> None:
        for number in [number for number, twin in self._twins.items() if twin.storage() is None]:
            self._left += 12 * self._twins.pop(number).seen.numel()

    def _follow(self, result: Any, again: Callable[[], Any] | None, arguments: tuple[Any, ...]) -> None:
        """Runs an op on the twins, and gives its results twins."""
        outputs = [value for value in tree_leaves(result) if _has_twin(value)]
        wide: list[Any] | None = None
        if again is not None:
            with suppress(Exception):  # the op does not run in double precision
                wide = tree_leaves(again())
        found = tree_leaves(result)
        touched = [value for value in arguments if _has_twin(value)]
        if wide is None or len(wide) != len(found):
            for tensor in (*outputs, *touched):
                if self._known(tensor) is None:
                    self._made(tensor)
            return
        own = {value.untyped_storage()._cdata for value in touched}
        for tensor, value in zip(found, wide, strict=True):
            if not _has_twin(tensor) or tensor.untyped_storage()._cdata in own:
                continue
            twin = self._made(tensor)
            if isinstance(value, torch.Tensor) and value.shape == tensor.shape:
                _view(twin.values, tensor).copy_(value)
        for tensor in touched:  # those that the op has written to: their twins are written too
            known = self._twins.get(tensor.untyped_storage()._cdata)
            if known is not None:
                known.seen.copy_(_whole(tensor))


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not has_torch_dispatch(tensor) and not tensor.is_meta


def _has_twin(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in _WIDER and _is_plain(value)


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """Returns all values of a tensor's storage, in its dtype."""
    storage = tensor.untyped_storage()
    size = (storage.nbytes() // tensor.element_size(),)
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage, 0, size, (1,))


def _view(values: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    found = values.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    found = found.conj() if tensor.is_conj() else found
    return found._neg_view() if tensor.is_neg() else found


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns whether two tensors are equal; NaN is equal to NaN."""
    return torch.equal(one, other) or torch.equal(one.nan_to_num(), other.nan_to_num())
