"""Loads the compiled fast path: `_fast_path.c` with the files in `fast_path_c/`.

There is one if a compiler was there when TensorLens was installed. It needs some functions of PyTorch, too: see
`native`.

`TENSORLENS_PURE_PYTHON=1` disables it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import handle_torch_function

from tensorlens.compiled_sources import is_built_from
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.torch_features import ONLY_CPU
from tensorlens.tracer.recording import native, ops
from tensorlens.tracer.recording.ops import Args
from tensorlens.tracer.recording.unsaved_storage import UnsavedStorage

if TYPE_CHECKING:
    from tensorlens.tracer.recording import _fast_path
    from tensorlens.tracer.recording.dispatch_mode import FastPathMode

_READ_DATA: Any = vars(torch._C.TensorBase)["data"].__get__

FastPath: type[_fast_path.FastPath] | None = None  # None: not compiled, or not for this PyTorch


def _has_bytes(address: int, contents: bytes) -> bool:
    """Returns whether these bytes are at an address."""
    return ctypes.string_at(address, len(contents)) == contents


has_bytes: Callable[[int, bytes], bool] = _has_bytes


if not os.environ.get("TENSORLENS_PURE_PYTHON"):
    with suppress(ImportError):
        from tensorlens.tracer.recording import _fast_path

        is_current = is_built_from(Path(__file__).with_name("_fast_path.c"), _fast_path.SOURCE)
        if is_current and native.bind(_fast_path):
            FastPath, has_bytes = _fast_path.FastPath, _fast_path.has_bytes


def table() -> dict[int, Any] | _fast_path.Table:
    """Makes a table of tensors by address."""
    return {} if FastPath is None else _fast_path.Table()


def storages() -> dict[int, int] | _fast_path.Storages:
    """Makes a table of storages by address."""
    return {} if FastPath is None else _fast_path.Storages()


def ids_in(table: dict[int, Any] | _fast_path.Table) -> list[int]:
    """Returns the ids of the tensors in a table."""
    return [entry[1] for entry in list(table.values())] if isinstance(table, dict) else table.ids()


def drop_dead(table: dict[int, Any] | _fast_path.Table) -> None:
    """Removes the entries of dead tensors, whose weak references come first."""
    if not isinstance(table, dict):
        table.drop_dead()
        return
    dead = [address for address, entry in list(table.items()) if entry[0]() is None]
    for address in dead:
        entry = table.get(address)
        if entry is not None and entry[0]() is None:
            del table[address]


def retire_dead(
    table: dict[int, Any] | _fast_path.Table, past: dict[int, int] | _fast_path.Storages, kept: dict[int, Any]
) -> None:
    """Moves the entries of dead tensors, but those of the `kept` storages, to a smaller table."""
    if not isinstance(table, dict):
        assert not isinstance(past, dict)
        table.retire(past, kept)
        return
    dead = [address for address, entry in list(table.items()) if entry[0]() is None and entry[3] not in kept]
    for address in dead:
        entry = table.get(address)
        if entry is not None and entry[0]() is None:
            past[address] = entry[3]
            del table[address]


def counter() -> _fast_path.Numbers | None:
    """Makes the counter of tensors that the compiled fast path uses."""
    return None if FastPath is None else _fast_path.Numbers()


def __torch_function__(func: Function, args: Args, kwargs: Mapping[str, object] = MappingProxyType({})) -> Any:
    """Calls a Python function from a frame with this name, by which `warnings_and_tracebacks` recognises our frames."""
    return func(*args, **kwargs)


def compiled_fast_path(
    recorder: FastPathMode, fallback: Callable[..., Any], atoms: set[type], texts: dict[object, str]
) -> _fast_path.FastPath:
    """Returns the compiled `__torch_function__` of a recorder.

    `fallback` is the one in Python, for calls that do not fit. `atoms` are the types of plain values, `texts` the names
    of dtypes and devices.
    """
    assert FastPath is not None
    tensor_ids = recorder.tensor_ids
    return FastPath(
        recorder=recorder,
        fallback=fallback,
        call_python=__torch_function__,
        tensor_ids=tensor_ids,
        call_kinds=recorder.call_kinds,
        codes=recorder.sites.by_id,
        user_files=recorder.sites.user_files,
        leaves=recorder.leaves,
        rows=recorder.rows,
        slow_path_reasons=recorder.slow_path_reasons,
        watched=recorder.watched,
        guarded=recorder.guarded,
        known=tensor_ids.known,
        blocks=tensor_ids.blocks,
        numbers=tensor_ids.numbers,
        atoms=atoms,
        risks=ops.RISKS,
        note_risk=ops.note_risk,
        tensor=torch.Tensor,
        parameter=torch.nn.Parameter,
        only_cpu=ONLY_CPU,
        sharers=tensor_ids.sharers,
        texts=texts,
        handle=handle_torch_function,
        uncounted=recorder.uncounted,
        saved_statistics=recorder.saved_statistics,
        unsaved=UnsavedStorage,
        alias_op=ops.name_of(_READ_DATA),
    )
