"""Takes arguments that must fit each other from the sample inputs of torch's own tests.

The samples are not public and take seconds to load, so they are tried last. Any error there counts as no sample.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch

MAX_SAMPLES = 6  # tried per operation


def samples(name: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yields (shape of x, the call as text) for an operation called `name`, dotted or not."""
    short = name.rpartition(".")[2]
    for info in operations():
        if info.name.rpartition(".")[2] != short:
            continue
        for sample in _samples_of(info):
            call = _call(info.name, sample)
            if call is not None and sample.input.numel():
                yield tuple(sample.input.shape), call


def _samples_of(info: Any) -> list[Any]:
    try:
        return list(islice(info.sample_inputs("cpu", torch.float32, requires_grad=False), MAX_SAMPLES))
    except Exception:
        return []


def operations() -> list[Any]:
    """Returns the operations of torch's own tests; none if they can't be loaded."""
    is_missing = "expecttest" not in sys.modules
    try:
        if is_missing:  # torch's tests import it, but their sample inputs do not use it
            stand_in = types.ModuleType("expecttest")
            stand_in.TestCase = object  # type: ignore[attr-defined]
            sys.modules["expecttest"] = stand_in
        from torch.testing._internal.common_methods_invocations import op_db

        return list(op_db)
    except Exception:
        return []
    finally:
        if is_missing:
            sys.modules.pop("expecttest", None)


def _call(name: str, sample: Any) -> str | None:
    if not isinstance(sample.input, torch.Tensor):
        return None
    arguments = [_text(value) for value in sample.args]
    arguments += [f"{key}={text}" if (text := _text(value)) else None for key, value in sample.kwargs.items()]
    path = f"torch.{name}"
    for part in path.split(".")[1:-1]:
        if not hasattr(torch, part) and part != "functional":
            return None
    if None in arguments:
        return None
    if not hasattr(torch, name) and "." not in name:
        return f"x.{name}({', '.join(filter(None, arguments))})"
    return f"{path}({', '.join(['x', *filter(None, arguments)])})"


def _text(value: Any) -> str | None:
    """Writes a sample argument as source text; None if that is not possible."""
    if isinstance(value, torch.Tensor):
        shape = tuple(value.shape)
        if value.dtype.is_floating_point:
            return f"x.new_full({shape}, 0.5)"
        return f"torch.zeros({shape}, dtype={value.dtype})"
    if value is None or isinstance(value, (bool, int, float, str, torch.dtype)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        parts = [_text(each) for each in value]
        inner = ", ".join(filter(None, parts))
        return None if None in parts else f"({inner},)" if len(parts) == 1 else f"({inner})"
    return None
