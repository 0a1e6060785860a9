"""Does once what the lens relies on, as a program under the lens: `runner/self_check.py` looks at the trace of its run.

The file is copied out of this package and run from there. What raises here leaves no fact in the trace, and that is
what the check looks for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint


class Square(torch.autograd.Function):
    """Squares a tensor."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        gradient: torch.Tensor = 2 * x * gradients[0]
        return gradient


def leaf() -> torch.Tensor:
    return torch.ones(3, requires_grad=True)


def changes_a_saved_tensor() -> None:
    y = leaf().exp()
    y.add_(1)
    y.sum().backward()


def applies_a_custom_function() -> None:
    Square.apply(leaf()).sum().backward()  # type: ignore[no-untyped-call]


def runs_checkpoints() -> None:
    for reentrant in (False, True):
        checkpoint(torch.nn.Linear(3, 3), leaf(), use_reentrant=reentrant).sum().backward()


def runs_hooks() -> None:
    x, layer = leaf(), torch.nn.Linear(3, 3)
    x.register_hook(lambda gradient: gradient * 2)
    layer.register_full_backward_hook(lambda module, before, after: None)
    y = layer(x)
    y.grad_fn.register_hook(lambda before, after: None)
    y.sum().backward()


def packs_saved_tensors() -> None:
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda kept: kept):
        y = leaf().exp()
    y.sum().backward()


def steps_optimizers() -> None:
    layer = torch.nn.Linear(3, 1)
    for kind in (torch.optim.SGD, torch.optim.Adam):
        optimizer = kind(layer.parameters(), lr=0.1)
        layer(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def enters_contexts() -> None:
    x = leaf()
    with torch.no_grad():
        x.mul_(2)
    with torch.inference_mode():
        x.exp()
    with torch.autograd.detect_anomaly(check_nan=False), torch.autocast("cpu"):
        x.exp().sum().backward()
    torch.func.grad(torch.sin)(torch.tensor(1.0))


def writes_past_a_version_counter() -> None:
    x = leaf()
    y = x.exp()
    y.data.mul_(2)
    y.sum().backward()


def frees_a_graph_twice() -> None:
    y = leaf().exp().sum()
    y.backward()
    y.backward()


PARTS: tuple[Callable[[], None], ...] = (
    changes_a_saved_tensor,
    applies_a_custom_function,
    runs_checkpoints,
    runs_hooks,
    packs_saved_tensors,
    steps_optimizers,
    enters_contexts,
    writes_past_a_version_counter,
    frees_a_graph_twice,
)

if __name__ == "__main__":
    for part in PARTS:
        with suppress(Exception):
            part()
