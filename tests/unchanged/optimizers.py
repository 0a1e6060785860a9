"""One optimizer of PyTorch's `optim_db` with each of its settings and implementations: steps, and its state on a round
trip through another optimizer."""

from __future__ import annotations

import copy
import warnings
from contextlib import nullcontext
from typing import Any

import torch
from torch.testing._internal.common_optimizers import OptimizerInfo

import tensorlens
from unchanged.operations import Lens, Observed, attempt, compared, facts, sharing, tensors_in

IMPLEMENTATIONS: dict[str, dict[str, bool]] = {
    "for loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "differentiable": {"differentiable": True},
    "default": {},
}
STEPS = 3


def implementations(info: OptimizerInfo) -> list[str]:
    """Those of `IMPLEMENTATIONS` that an optimizer has on a CPU."""
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
    """Backward through a step, to the parameter and the gradient that it was taken with."""
    torch.manual_seed(3)
    leaf, gradient = (torch.rand(3, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    parameter = leaf.clone()
    optimizer = keep["optimizer"] = _make(info)([parameter], **settings)
    parameter.grad = gradient.clone()
    optimizer.step()
    parameter.sum().backward()
    keep["parameters"] = [leaf, gradient, parameter]


def observe(info: OptimizerInfo, settings: dict[str, Any], lens: Lens) -> Observed:
    """Train, hand the state to a second optimizer, train on with it: inside `lens()`; read everything outside of it."""
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

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with lens():
            attempt(run, seen, "run")
    seen["warnings"] = [(entry.category, str(entry.message), entry.filename, entry.lineno) for entry in caught]
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
    seen["random"] = torch.get_rng_state().numpy().tobytes()
    with torch.no_grad():
        seen["tensors"] = [facts(tensor) for tensor in everything]
    return seen


def _plain(value: Any) -> Any:
    """`value` with its tensors, which are compared by themselves, taken out."""
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, dict):
        return [(key, _plain(item)) for key, item in value.items()]
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else repr(value)


def compare(info: OptimizerInfo, limit: int | None, lens: Lens = tensorlens.trace) -> tuple[int, int, list[str]]:
    """(settings, those that two plain runs give different numbers for, what differs under the lens)."""
    count, random, wrong = 0, 0, []
    for sample in info.optim_inputs_func(device="cpu")[:limit]:
        for name in implementations(info):
            settings = [{**copy.deepcopy(sample.kwargs), **IMPLEMENTATIONS[name]} for _ in range(3)]
            plain, again = (observe(info, one, nullcontext) for one in settings[:2])
            differs, parts = compared(plain, again, observe(info, settings[2], lens))
            count, random = count + 1, random + differs
            wrong += [f"{info.name} {sample.desc} {name}: {part}" for part in parts]
    return count, random, wrong
