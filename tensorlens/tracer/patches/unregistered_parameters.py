"""What an optimizer is given when it finds nothing to optimize: the module behind `parameters()`, and what that module
holds without knowing it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch

from tensorlens.tracer.isolation.module_tree import named_parts, parameters_of

SPENT = "exhausted generator"
_LISTERS = ("parameters", "named_parameters")


def is_spent(params: Any) -> bool:
    """Whether an iterator had come to its end before anyone asked it for parameters."""
    return inspect.isgenerator(params) and inspect.getgeneratorstate(params) == inspect.GEN_CLOSED


def owner_of(params: Any) -> torch.nn.Module | None:
    """The module whose `parameters()` this generator is."""
    if not inspect.isgenerator(params) or params.gi_frame is None or params.gi_code.co_name not in _LISTERS:
        return None
    owner = params.gi_frame.f_locals.get("self")
    return owner if isinstance(owner, torch.nn.Module) else None


def unregistered(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Tensors that require grad and that a module or a part of it holds where `parameters()` does not look."""
    for _, part in named_parts(module):
        for name, value in list(vars(part).items()):
            if name not in ("_parameters", "_modules", "_buffers"):
                yield from _trainable(value, 3)


def _trainable(value: Any, depth: int) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            yield value
    elif isinstance(value, torch.nn.Module):
        yield from (parameter for parameter in parameters_of(value) if parameter.requires_grad)
    elif depth and isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _trainable(item, depth - 1)
