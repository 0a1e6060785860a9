"""Knows the default saved-tensor hooks that are active in this thread, in the process that `compare` measures in."""

from __future__ import annotations

import threading
from typing import Any

import torch

_autograd: Any = torch._C._autograd
_TOP: Any = getattr(_autograd, "_top_saved_tensors_default_hooks", None)
_pushed = threading.local()  # `hooks`: those that are active, where PyTorch can't be asked


def top_hooks() -> Any:
    """Returns the (pack, unpack) hooks that are active; None if there are none."""
    if _TOP is not None:
        return _TOP(True)
    hooks = getattr(_pushed, "hooks", None)
    return hooks[-1] if hooks else None


def _follow() -> None:
    """Notes the hooks that become active and inactive from here on."""
    push, pop = _autograd._push_saved_tensors_default_hooks, _autograd._pop_saved_tensors_default_hooks

    def pushing(pack: object, unpack: object) -> None:
        push(pack, unpack)
        _pushed.hooks = [*getattr(_pushed, "hooks", ()), (pack, unpack)]

    def popping() -> None:
        pop()
        _pushed.hooks = getattr(_pushed, "hooks", [])[:-1]

    _autograd._push_saved_tensors_default_hooks, _autograd._pop_saved_tensors_default_hooks = pushing, popping


if _TOP is None:
    _follow()
