"""The short way of `hot.py`, compiled (`_fast_path.c`), where there was a compiler when the lens was installed.

`TENSORLENS_PURE_PYTHON=1` does without it.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from tensorlens.tracer.recording import ops

FastPath: Any = None


def _is_current(built: Any) -> bool:
    """Whether it was built from the source that lies beside it: a checkout may have moved on since."""
    source = Path(__file__).with_name("_fast_path.c")
    return not source.exists() or hashlib.sha256(source.read_bytes()).hexdigest() == built.SOURCE


if not os.environ.get("TENSORLENS_PURE_PYTHON"):
    with suppress(ImportError):
        from tensorlens.tracer.recording import _fast_path

        if _is_current(_fast_path):
            FastPath = _fast_path.FastPath


def __torch_function__(func: Any, args: Any, kwargs: Any = MappingProxyType({})) -> Any:
    """Makes a call of a function written in Python: with a frame of ours, and of this name, around it, as `invisible`
    expects."""
    return func(*args, **kwargs)


def compiled_fast_path(recorder: Any, fallback: Any, atoms: set[Any]) -> Any:
    """`__torch_function__` of a `FastPathMode`. Other calls go to `otherwise`. `atoms`: types of plain values."""
    tensor_ids = recorder.tensor_ids
    return FastPath(
        recorder=recorder,
        fallback=fallback,
        call_python=__torch_function__,
        tensor_ids=tensor_ids,
        call_kinds=recorder.call_kinds,
        templates=recorder.templates,
        codes=recorder.sites.by_id,
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
        next_sequence=torch._C._autograd._get_sequence_nr,
        grad_enabled=torch.is_grad_enabled,
        only_cpu=not torch.accelerator.is_available(),
    )
