"""Arguments for operations whose parameters have to fit each other, from the samples that torch tests itself with.

They are no public part of torch and take seconds to load, so they are asked last, and whatever fails there means none.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch

SAMPLES = 6  # tried per operation


def samples(name: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """(shape of x, the call as text) for an operation called `name`, dotted or not."""
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
        return list(islice(info.sample_inputs("cpu", torch.float32, requires_grad=False), SAMPLES))
    except Exception:
        return []


def operations() -> list[Any]:
    """The descriptions of operations that torch's own tests run on; none where they can't be loaded."""
    added = "expecttest" not in sys.modules
    try:
        if added:  # torch's tests import it, their sample inputs do not use it
            stand_in = types.ModuleType("expecttest")
            stand_in.TestCase = object  # type: ignore[attr-defined]
            sys.modules["expecttest"] = stand_in
        from torch.testing._internal.common_methods_invocations import op_db

        return list(op_db)
    except Exception:
        return []
    finally:
        if added:
            sys.modules.pop("expecttest", None)


def _call(name: str, sample: Any) -> str | None:
    if not isinstance(sample.input, torch.Tensor):
        return None
    given = [_text(value) for value in sample.args]
    given += [f"{key}={text}" if (text := _text(value)) else None for key, value in sample.kwargs.items()]
    path = f"torch.{name}"
    for part in path.split(".")[1:-1]:
        if not hasattr(torch, part) and part != "functional":
            return None
    if None in given:
        return None
    if not hasattr(torch, name) and "." not in name:
        return f"x.{name}({', '.join(filter(None, given))})"
    return f"{path}({', '.join(['x', *filter(None, given)])})"


def _text(value: Any) -> str | None:
    """A sample argument as source text; None for what can't be written down."""
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
