"""Programs whose tensors are on a device, one for each way in which the tracer looks at tensors.

Each takes the device. On `meta`, nothing can be read: a read raises, so a program that runs there reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

Program = Callable[[str], object]


def leaf(device: str, *sizes: int) -> torch.Tensor:
    return torch.empty(*(sizes or (3,)), device=device, requires_grad=True)


def network(device: str) -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4, device=device), nn.Tanh(), nn.Linear(4, 1, device=device))


def trains(device: str, **options: Any) -> None:
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **options)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.zeros(2, 3, device=device)).square().mean().backward()
        optimizer.step()


def trains_with_momentum(device: str) -> None:
    trains(device, momentum=0.9, foreach=False)


def trains_with_adam(device: str) -> None:
    model = network(device)
    optimizer = torch.optim.AdamW(model.parameters(), capturable=False, foreach=False)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(2):
        model(torch.zeros(2, 3, device=device)).log().div(leaf(device, 1)).sum().backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=False)


def accumulates(device: str) -> None:
    x = leaf(device)
    for _ in range(3):
        (x * 2).sum().backward()
    y = x.exp()
    y.retain_grad()
    y.sum().backward()
    torch.autograd.grad((x * x).sum(), x, create_graph=True)[0].sum().backward()


def has_hooks(device: str) -> None:
    x, layer = leaf(device), nn.Linear(3, 3, device=device)
    x.register_hook(lambda gradient: gradient * 2)
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    layer.register_forward_hook(lambda module, before, after: after * 2)
    layer.register_full_backward_hook(lambda module, before, after: None)
    y = layer(x)
    y.grad_fn.register_hook(lambda before, after: None)
    y.sum().backward()


def recomputes(device: str, reentrant: bool = False) -> None:
    x, scale = leaf(device, 20, 20), torch.zeros(1, device=device)

    def block(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() * x * scale).exp()

    y = checkpoint(block, x, use_reentrant=reentrant)
    y.sum().backward()


def recomputes_reentrant(device: str) -> None:
    recomputes(device, True)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.save_for_backward(x)
        ctx.y = y
        return x * y, x + y

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (x,) = ctx.saved_tensors
        return gradients[0] * ctx.y, gradients[1] * x


def has_a_custom_function(device: str) -> None:
    x, y = leaf(device), leaf(device)
    a, b = Scaled.apply(x, y)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        y.mul_(2)
    (a + b).sum().backward()


def changes_modes(device: str) -> None:
    x = leaf(device)
    with torch.no_grad():
        x.mul_(2)
    with torch.inference_mode():
        x.exp()
    with torch.set_grad_enabled(False):
        torch.add(x, 1, out=torch.empty(3, device=device))


def writes_in_place(device: str) -> None:
    x = leaf(device, 4)
    y = x * 1
    y.mul_(2)
    y[0] = 0
    y[1:3] += 1
    y += x
    torch._foreach_mul_([y], 2.0)
    nn.functional.relu(y, inplace=True)
    y.sum().backward()


def makes_views(device: str) -> None:
    x = leaf(device, 4, 4)
    y = x.view(2, 8).t()[1:].unsqueeze(0).expand(2, 7, 2)
    a, b = x.split(2)
    (y.sum() + (a.detach() * b).sum() + x.diagonal().sum()).backward()


def writes_past_the_version(device: str) -> None:
    x = leaf(device)
    y = x.exp()
    y.data.mul_(2)
    z = y.sin()
    y.data = torch.zeros(3, device=device)
    x.data = torch.zeros(3, device=device)
    z.set_(torch.zeros(3, device=device))  # type: ignore[call-overload]
    y.sum().backward()


def writes_past_the_version_of_a_graph_on_two_devices(device: str) -> None:
    x, host = leaf(device), torch.ones(3, requires_grad=True)
    y = x.exp()
    kept = host.exp()
    kept.data.mul_(2)
    y.data.mul_(2)
    kept.sum().backward()
    y.sum().backward()


def normalises(device: str) -> None:
    layer = nn.BatchNorm1d(3, device=device)
    layer(torch.zeros(2, 3, device=device)).sum().backward()
    layer.eval()
    y = layer(torch.zeros(2, 3, device=device))
    layer.train()
    layer(torch.zeros(2, 3, device=device))
    y.sum().backward()


def packs_saved_tensors(device: str) -> None:
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda kept: kept):
        y = leaf(device).exp()
    y.mul_(2)
    y.sum().backward()


def has_infinite_derivatives(device: str) -> None:
    x, host = leaf(device), torch.zeros(3, requires_grad=True)
    (torch.where(x > 0, x.sqrt(), x / x) + x.norm()).sum().backward()
    host.sqrt().sum().backward()
    (host.log() * torch.zeros(3)).sum().backward()


def transforms(device: str) -> None:
    x = torch.zeros(3, device=device)
    torch.func.grad(lambda x: (x * x).sum())(x)
    torch.func.vmap(torch.sin)(x)
    torch.func.jvp(torch.sin, (x,), (x,))


def clips_and_scales(device: str) -> None:
    model = network(device)
    (model(torch.zeros(2, 3, device=device)).sum() * 2).backward()
    for parameter in model.parameters():
        parameter.grad.mul_(0.5)  # type: ignore[union-attr]
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    model.zero_grad()
    model.load_state_dict(model.state_dict())


def fails_by_a_changed_tensor(device: str) -> None:
    y = leaf(device).exp()
    y.add_(1)
    y.sum().backward()


def fails_by_a_freed_graph(device: str) -> None:
    y = leaf(device).exp().sum()
    y.backward()
    y.backward()


def fails_by_a_shape(device: str) -> None:
    torch.zeros(2, 3, device=device) @ leaf(device, 2, 3)


def is_caught(device: str) -> None:
    for program in (fails_by_a_changed_tensor, fails_by_a_freed_graph, fails_by_a_shape):
        try:
            program(device)
        except RuntimeError:
            continue
        raise AssertionError


PROGRAMS: tuple[Program, ...] = (
    trains, trains_with_momentum, trains_with_adam, accumulates, has_hooks, recomputes, recomputes_reentrant,
    has_a_custom_function, changes_modes, writes_in_place, makes_views, writes_past_the_version,
    writes_past_the_version_of_a_graph_on_two_devices, normalises, packs_saved_tensors, has_infinite_derivatives,
    transforms, clips_and_scales, is_caught, fails_by_a_changed_tensor, fails_by_a_freed_graph, fails_by_a_shape,
)  # fmt: skip
