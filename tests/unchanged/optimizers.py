"""Runs one optimizer of PyTorch's `optim_db` with each of its settings and implementations: its steps, and a round trip
of its state through another optimizer."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import torch
from torch.testing._internal.common_optimizers import OptimizerInfo

import tensorlens
from unchanged.observing import Lens, Observed, Outcome, added, attempt, compared, facts, sharing, tensors_in, watched

IMPLEMENTATIONS: dict[str, dict[str, bool]] = {
    "for loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "differentiable": {"differentiable": True},
    "default": {},
}
STEPS = 3


def implementations(info: OptimizerInfo) -> list[str]:
    """Returns those of `IMPLEMENTATIONS` that an optimizer has on a CPU."""
    offered = set(info.supported_impls)
    if "cpu" not in info.supports_fused_on:
        offered.discard("fused")
    if "foreach" in offered:
        offered.add("for loop")
    return [name for name in IMPLEMENTATIONS if name in offered or name == "default"]


def _make(info: OptimizerInfo) -> Any:
    return info.optim_cls  # annotated as an optimizer, it is the class of one


def _model(info: OptimizerInfo) -> torch.nn.Module:
    torch.manual_seed(3)
    if info.only_supports_sparse_grads:
        return torch.nn.Embedding(6, 3, sparse=True)
    layers = [torch.nn.Linear(3, 4, bias=False), torch.nn.Tanh(), torch.nn.Linear(4, 2, bias=False)]
    if info.name != "Muon":  # which takes matrices only
        layers.insert(1, torch.nn.LayerNorm(4))
    return torch.nn.Sequential(*layers)


def _train(optimizer: Any, model: torch.nn.Module, steps: int) -> list[torch.Tensor]:
    inputs = torch.tensor([[0, 2], [5, 2]]) if isinstance(model, torch.nn.Embedding) else torch.randn(5, 3)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = model(inputs).square().sum()
        loss.backward()
        return loss

    losses = []
    for _ in range(steps):
        losses.append(optimizer.step(closure))
    return losses


def _differentiate(info: OptimizerInfo, settings: dict[str, Any], keep: dict[str, Any]) -> None:
    """Runs backward through a step, to the parameter and the gradient of that step."""
    torch.manual_seed(3)
    leaf, gradient = (torch.rand(3, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    parameter = leaf.clone()
    optimizer = keep["optimizer"] = _make(info)([parameter], **settings)
    parameter.grad = gradient.clone()
    optimizer.step()
    parameter.sum().backward()
    keep["parameters"] = [leaf, gradient, parameter]


def observe(info: OptimizerInfo, settings: dict[str, Any], lens: Lens) -> Observed:
    """Trains, loads the state into a second optimizer, goes on with it, inside `lens()`; reads everything outside."""
    seen: Observed = {}
    keep: dict[str, Any] = {}

    def run() -> None:
        if settings.get("differentiable"):
            _differentiate(info, settings, keep)
            return
        model = _model(info)
        keep["parameters"] = list(model.parameters())
        optimizer = keep["optimizer"] = _make(info)(list(model.parameters()), **settings)
        keep["losses"] = _train(optimizer, model, STEPS)
        second = keep["second"] = _make(info)(list(model.parameters()), **settings)
        second.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        keep["losses"] += _train(second, model, 1)

    with watched(seen), lens():
        attempt(run, seen, "run")
    parameters = keep.get("parameters", [])
    states = [keep[name].state_dict() for name in ("optimizer", "second") if name in keep]
    seen["states"] = [_plain(state) for state in states]
    everything = [
        *parameters,
        *(p.grad for p in parameters if p.is_leaf and p.grad is not None),
        *tensors_in(states, 6),
    ]
    everything += tensors_in(keep.get("losses", []))
    seen["sharing"] = sharing(everything)
    with torch.no_grad():
        seen["tensors"] = [facts(tensor) for tensor in everything]
    return seen


def _plain(value: Any) -> Any:
    """Returns `value` without its tensors, which are compared separately."""
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, dict):
        return [(key, _plain(item)) for key, item in value.items()]
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else repr(value)


def compare(info: OptimizerInfo, limit: int | None, lens: Lens = tensorlens.trace) -> Outcome:
    """Runs an optimizer with each of its settings, in each implementation."""

    def settings(name: str) -> list[dict[str, Any]]:
        samples = info.optim_inputs_func(device="cpu")[:limit]
        return [{**copy.deepcopy(sample.kwargs), **IMPLEMENTATIONS[name]} for sample in samples]

    return added(
        compared(partial(settings, name), partial(observe, info), f"{info.name} {name}", lens)
        for name in implementations(info)
    )
