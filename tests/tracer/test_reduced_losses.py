"""Reads how `trace(training=True)` notes that losses were reduced."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tensorlens
from tensorlens.records.model import Backward, Trace

Loss = Callable[[torch.Tensor], torch.Tensor]
LABELS = torch.tensor([0, 1, -100, 1])


def traced(loss: Loss, backward: Callable[[torch.Tensor], object] = torch.Tensor.backward) -> Trace:
    net = nn.Linear(3, 2)
    data = torch.randn(4, 3)
    with tensorlens.trace(training=True) as lens:
        backward(loss(net(data)))
    return lens.trace()


KNOWN: dict[str, tuple[Loss, tuple[bool, float, float]]] = {
    "mean": (lambda out: out.mean(), (True, 8, 1)),
    "sum": (lambda out: out.square().sum(), (False, 8, 1)),
    "divided": (lambda out: F.mse_loss(out, torch.zeros(4, 2)) / 4, (True, 8, 0.25)),
    "multiplied": (lambda out: 2 * (out.abs().mean() * torch.tensor(3.0)), (True, 8, 6)),
    "negative": (lambda out: -out.mean() + 1, (True, 8, -1)),
    "a sum of squares": (lambda out: F.mse_loss(out, torch.zeros(4, 2), reduction="sum"), (False, 8, 1)),
    "l1": (lambda out: F.l1_loss(out[:3], torch.zeros(3, 2)), (True, 6, 1)),
    "huber": (lambda out: F.huber_loss(out, torch.zeros(4, 2)), (True, 8, 1)),
    "binary": (lambda out: F.binary_cross_entropy_with_logits(out, torch.zeros(4, 2)), (True, 8, 1)),
    "classes": (lambda out: F.cross_entropy(out, LABELS) / 2, (True, 3, 0.5)),
    "half precision": (lambda out: out.half().float().mean() / 8, (True, 8, 0.125)),
}
UNKNOWN: dict[str, Loss] = {
    "two terms": lambda out: out.mean() + out.square().mean(),
    "a product of losses": lambda out: out.mean() * out.square().mean(),
    "weights of classes": lambda out: F.cross_entropy(out, LABELS, weight=torch.tensor([1.0, 2.0])),
    "a norm": lambda out: out.norm(),
    "a mean along a dimension": lambda out: out.mean(0).max(),
    "divided by zero": lambda out: out.mean() / 0,
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_reduction_is_noted(name: str) -> None:
    loss, expected = KNOWN[name]
    trace = traced(loss)
    (found,) = trace.inspection.reduced
    assert (found.mean, found.elements, found.factor) == pytest.approx(expected)
    assert [event.started for event in trace.events if isinstance(event, Backward)] == [found.index]


@pytest.mark.parametrize("name", UNKNOWN)
def test_another_loss_has_no_reduction(name: str) -> None:
    assert traced(UNKNOWN[name]).inspection.reduced == ()


def test_hooks_for_saved_tensors_are_left_alone() -> None:
    unpacked: list[torch.Tensor] = []

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        unpacked.append(tensor)
        return tensor

    def run(training: bool) -> int:
        unpacked.clear()
        net, data = nn.Linear(3, 2), torch.randn(4, 3)
        with (
            tensorlens.trace(training=training),
            torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack),
        ):
            (F.mse_loss(net(data), torch.zeros(4, 2)) / 2).backward()
        return len(unpacked)

    assert run(training=True) == run(training=False)


def test_a_run_without_training_has_none() -> None:
    net = nn.Linear(3, 2)
    with tensorlens.trace() as lens:
        net(torch.ones(1, 3)).mean().backward()
    assert lens.trace().inspection.reduced == ()
