"""Knows, for calls that cut a value off from the graph, what to do instead so that its gradient is recorded."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.ops import Args, Kwargs

Recorded = Callable[[], object]


def recorded(func: Function, args: Args, kwargs: Kwargs) -> Recorded | None:
    """Returns a function to call in place of a cut; None if the call is no cut, or leads out of torch."""
    first = args[0] if args else None
    if func in _ALIASES and isinstance(first, torch.Tensor):
        return lambda: first.view_as(first)
    if func in _IN_PLACE:
        return lambda: first
    if func in _FLAGS and not (args[1] if len(args) > 1 else kwargs.get("requires_grad", True)):
        return lambda: first
    if func in _FACTORIES:
        return _of_factory(first, kwargs)
    return None


def _of_factory(data: object, kwargs: Kwargs) -> Recorded | None:
    """Returns what makes a tensor from tensors as `torch.tensor` does, and is recorded."""
    if isinstance(data, torch.Tensor):
        return lambda: data.to(dtype=kwargs.get("dtype"), device=kwargs.get("device"), copy=True)
    if isinstance(data, list | tuple) and data and all(isinstance(each, torch.Tensor) for each in data):
        return lambda: torch.stack(tuple(data)).to(dtype=kwargs.get("dtype"), device=kwargs.get("device"))
    return None


_ALIASES = {torch.Tensor.detach, torch.detach, ops.getter("data")}
_IN_PLACE = {torch.Tensor.detach_, torch.detach_}
_FLAGS = {torch.Tensor.requires_grad_, ops.setter("requires_grad")}
_FACTORIES = {torch.tensor, torch.as_tensor, torch.asarray}
