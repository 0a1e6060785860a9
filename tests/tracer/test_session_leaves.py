"""A recording that begins after the model and its optimizer were made sees every gradient of its passes."""

from collections.abc import Callable

import pytest
import torch

import tensorlens
from tensorlens.records.model import Backward


def _step(optimizer: torch.optim.Optimizer, parameter: torch.Tensor) -> None:
    optimizer.step()
    optimizer.zero_grad()


def _zero_grad(optimizer: torch.optim.Optimizer, parameter: torch.Tensor) -> None:
    optimizer.zero_grad()


def _other_optimizer(optimizer: torch.optim.Optimizer, parameter: torch.Tensor) -> None:
    torch.optim.SGD([parameter], lr=0.1)


@pytest.mark.parametrize("meet", [_step, _zero_grad, _other_optimizer])
def test_a_leaf_met_through_an_optimizer_has_its_gradients(
    meet: Callable[[torch.optim.Optimizer, torch.Tensor], None],
) -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    (parameter * 2).sum().backward()
    with tensorlens.trace() as recording:
        meet(optimizer, parameter)
        (parameter * 3).sum().backward()
    trace = recording.trace()
    (backward,) = [event for event in trace.events if isinstance(event, Backward)]
    (gradient,) = backward.gradients
    assert gradient.after is not None
    assert trace.tensors[gradient.tensor].type == "Parameter"
