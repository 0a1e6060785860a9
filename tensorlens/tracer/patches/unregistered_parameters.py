"""Finds the tensors that a module keeps in plain attributes, where `parameters()` does not look.

Also finds why `parameters()` gave an optimizer nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import islice

import torch

from tensorlens.tracer.isolation.module_tree import Limit, named_parts, reachable_tensors, state_of

SPENT = "exhausted generator"
MAX_ITEMS, MAX_SEARCHED = 100, 100_000  # of a container, and of all
MAX_TENSORS = 1000  # below one attribute
_LISTERS = ("parameters", "named_parameters")
_TABLES = ("_parameters", "_buffers", "_modules")


def is_spent(params: object) -> bool:
    """Returns whether a generator was already exhausted when the optimizer asked it for parameters."""
    return inspect.isgenerator(params) and inspect.getgeneratorstate(params) == inspect.GEN_CLOSED


def owner_of(params: object) -> torch.nn.Module | None:
    """Finds the module whose `parameters()` returned this generator."""
    if not inspect.isgenerator(params) or params.gi_frame is None or params.gi_code.co_name not in _LISTERS:
        return None
    owner = params.gi_frame.f_locals.get("self")
    return owner if isinstance(owner, torch.nn.Module) else None


def unregistered(
    module: torch.nn.Module, seen: set[int] | None = None
) -> Iterator[tuple[str, torch.Tensor, torch.nn.Module]]:
    """Finds the tensors that require grad in the plain attributes of a module and of the modules registered in it.

    Args:
        module: where to start.
        seen: ids of modules to leave out. Those that are looked at are added.

    Yields:
        (path from `module`, tensor, the module that has the attribute)
    """
    seen, limit = set() if seen is None else seen, Limit(MAX_ITEMS, MAX_SEARCHED)
    for path, part in named_parts(module):
        if id(part) in seen:
            continue
        seen.add(id(part))
        prefix = f"{path}." if path else ""
        for name, value in list(state_of(part).items()):
            if name not in _TABLES:
                below = reachable_tensors(value, 3, limit, _registered, path=f"{prefix}{name}")
                trainable = ((inner, tensor) for inner, tensor in below if tensor.requires_grad)
                yield from ((inner, tensor, part) for inner, tensor in islice(trainable, MAX_TENSORS))


def _registered(path: str, module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Returns the parameters of a module that a plain attribute holds, and of the modules in it."""
    for inner, part in named_parts(module):
        prefix = f"{path}.{inner}" if inner else path
        for name, parameter in (state_of(part).get("_parameters") or {}).items():
            if parameter is not None:
                yield f"{prefix}.{name}", parameter
