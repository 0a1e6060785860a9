"""Double precision beside an eager run: it is that of a run in double precision, and the program does not notice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.reference.double_precision import DoublePrecision

Program = Callable[[torch.dtype], list[torch.Tensor]]


def twins(program: Program) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
    """The gradients of a program in single precision, and their twins."""
    double = DoublePrecision(new_recorder())
    with double:
        found = program(torch.float32)
    return found, [double.twin_of(each) for each in found]


def trained(dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1))
    data = torch.randn(16, 4)
    model, data = model.to(dtype), data.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def written_in_place(dtype: torch.dtype) -> list[torch.Tensor]:
    weight = torch.linspace(0.1, 1.0, 6).to(dtype).requires_grad_()
    table = (weight * 3).reshape(2, 3)
    table[0].mul_(1 / 3)
    view = table.t()[1:]
    view += view.exp()
    loss = (table / 7).sum() + torch.einsum("ij,kj->ik", table, table).sum()
    loss.backward()
    assert weight.grad is not None
    return [weight.grad]


@pytest.mark.parametrize("program", [trained, written_in_place], ids=lambda program: program.__name__)
def test_it_is_the_gradient_of_a_run_in_double_precision(program: Program) -> None:
    single, found = twins(program)
    for own, plain, twin, double in zip(single, program(torch.float32), found, program(torch.float64), strict=True):
        assert torch.equal(own, plain)
        assert own.dtype is torch.float32
        assert twin is not None
        assert twin.dtype is torch.float64
        assert not torch.equal(own.double(), double)
        torch.testing.assert_close(twin, double, rtol=1e-13, atol=1e-15)


def test_random_numbers_are_those_of_the_program() -> None:
    def program(_: torch.dtype) -> list[torch.Tensor]:
        torch.manual_seed(0)
        weight = torch.randn(50, requires_grad=True)
        (nn.functional.dropout(weight, 0.5) * torch.rand(50)).square().sum().backward()
        assert weight.grad is not None
        return [weight.grad]

    single, found = twins(program)
    assert found[0] is not None
    assert torch.equal(single[0], program(torch.float32)[0])
    torch.testing.assert_close(found[0], single[0].double(), rtol=1e-6, atol=1e-7)
    assert torch.equal(found[0] == 0, single[0] == 0)


def test_a_write_that_it_does_not_see_counts() -> None:
    double = DoublePrecision(new_recorder())
    with double:
        tensor = torch.ones(3) / 3
        tensor.numpy()[0] = 5.0
        found = double.twin_of(tensor * 2)
    assert found is not None
    torch.testing.assert_close(found, torch.tensor([10.0, 2 / 3, 2 / 3], dtype=torch.float64), rtol=1e-7, atol=0)
