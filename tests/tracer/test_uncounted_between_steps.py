"""Uses of tensors that no use count shows, in steps without a record: a recorded step must know of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tensorlens
from tensorlens.records.report import Report
from tensorlens.tracer.patches import sampling


class Keeping(torch.autograd.Function):
    """Keeps a tensor as an attribute of `ctx`, where PyTorch does not check its version."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient * ctx.scale, None


def applied(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = Keeping.apply(x, scale)  # type: ignore[no-untyped-call]
    return made


def packed(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        return x * scale


def train(made_in: int, make: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    """Makes a graph in one step; writes what it keeps, and goes back through it, in the fourth."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(1, 6):
        if step == made_in:
            scale = torch.full((3,), 2.0)
            out = make(weight, scale)
        if step == 4:
            scale.data.mul_(5)
            out.sum().backward()
        (weight * weight).sum().backward()
        optimizer.step()


def report_of(run: Callable[[], object]) -> Report:
    with tensorlens.trace(every=4) as lens:
        run()
    return lens.report()


@pytest.mark.parametrize(("make", "made_in"), [(applied, 1), (applied, 3), (applied, 4), (packed, 3)])
def test_an_unnoticed_write_to_what_a_function_or_a_hook_keeps_is_found(
    make: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], made_in: int
) -> None:
    report = report_of(lambda: train(made_in, make))
    assert [each.code for each in report.diagnostics] == ["unversioned-write-to-saved-tensor"]


def test_what_a_function_from_before_the_recording_keeps_is_found() -> None:
    made_earlier = Keeping.apply  # the patches do not see its calls
    report = report_of(lambda: train(3, made_earlier))
    assert [each.code for each in report.diagnostics] == ["unversioned-write-to-saved-tensor"]


def test_hooks_that_a_recorded_step_has_opened_pack_unseen_afterwards() -> None:
    def run() -> None:
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        kept: list[torch.Tensor] = []
        hooks = torch.autograd.graph.saved_tensors_hooks(kept.append, lambda _: kept.pop())
        hooks.__enter__()
        scale = torch.full((3,), 2.0)
        for step in range(1, 5):
            if step == 3:
                out = weight * scale
                hooks.__exit__()
            if step == 4:
                scale.data.mul_(5)
                out.sum().backward()
            optimizer.step()

    assert len(report_of(run).trace.inspection.overwrites) == 1


def test_a_soft_update_in_a_recorded_step_is_no_write_to_saved_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has saved the average, as in a complete recording."""
    monkeypatch.setattr(sampling, "is_earlier_apply", lambda _: False)  # other tests may have left some behind

    def run() -> None:
        weight = torch.nn.Parameter(torch.ones(3))
        average = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(9):
            weight.pow(2).sum().backward()
            optimizer.step()
            average.data.mul_(0.9).add_(weight.data, alpha=0.1)

    assert report_of(run).trace.inspection.overwrites == ()
