"""Optimizer steps and `zero_grad` are compared before and after if that misses nothing, else recorded call by call."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import tensorlens
from tensorlens.records.invariants import validate
from tensorlens.records.model import Call, Trace

OPTIMIZERS = sorted(
    (
        kind
        for kind in vars(torch.optim).values()
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer
    ),
    key=lambda kind: kind.__name__,
)
DENSE = [kind for kind in OPTIMIZERS if kind not in (torch.optim.LBFGS, torch.optim.SparseAdam)]


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4, bias=False), nn.Tanh(), nn.Linear(4, 2, bias=False))


def train(kind: Any, options: dict[str, Any], steps: int = 2) -> list[Any]:
    """Returns the parameters, their versions and the optimizer's state after each step of a training run."""
    net = model()
    optimizer = kind(net.parameters(), **{"lr": 0.01, **options})
    seen: list[Any] = []
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()
        state = [{key: str(value) for key, value in optimizer.state[p].items()} for p in net.parameters()]
        seen.append([(p.detach().tolist(), p._version) for p in net.parameters()] + state)
    return seen


def calls(trace: Trace, op: str) -> list[Call]:
    assert not validate(trace)
    return [event for event in trace.events if isinstance(event, Call) and event.op == op]


def within(trace: Trace, step: str) -> set[str]:
    return {event.op for event in trace.events if isinstance(event, Call) and event.within == step}


@pytest.mark.parametrize("kind", DENSE, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}, {"foreach": True}], ids=str)
def test_a_step_is_one_write_of_each_parameter(kind: Any, options: dict[str, Any]) -> None:
    try:
        plain = train(kind, options)
    except (TypeError, ValueError):
        pytest.skip("no such option")
    with tensorlens.trace() as lens:
        assert train(kind, options) == plain
        assert torch._C._len_torch_function_stack() == 1
    step = f"{kind.__name__}.step"
    trace = lens.trace()
    assert within(trace, step) == {step}
    told = [(call.writes[0].before, call.writes[0].after) for call in calls(trace, step)]
    moved = [version for left in plain for _, version in left[:2]]
    assert [after for _, after in told] == moved
    assert all(before < after for before, after in told)
    assert all(len(call.inputs) == 2 and call.mode == "no_grad" for call in calls(trace, step))
    assert {total.count for total in trace.totals if total.op == step} == {2}


@pytest.mark.parametrize("options", [{"fused": True}, {"differentiable": True}], ids=str)
def test_steps_that_do_more_are_recorded_call_by_call(options: dict[str, Any]) -> None:
    with tensorlens.trace() as lens:
        weight = torch.ones(2)  # a leaf that requires grad can't be written where the step is differentiated
        weight.grad = torch.ones(2)
        torch.optim.SGD([weight], lr=0.1, **options).step()
    assert not calls(lens.trace(), "SGD.step")
    assert within(lens.trace(), "SGD.step")


def test_a_hook_of_the_program_is_seen_inside_a_step() -> None:
    def clip(optimizer: Any, args: Any, kwargs: Any) -> None:
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad.clamp_(-1, 1)

    with tensorlens.trace() as lens:
        weight = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        optimizer.register_step_pre_hook(clip)
        (weight * 5).sum().backward()
        optimizer.step()
    assert weight.tolist() == pytest.approx([0.9, 0.9])
    assert {"Tensor.clamp_", "Tensor.add_"} <= within(lens.trace(), "SGD.step")


def test_a_closure_is_seen_inside_a_step() -> None:
    with tensorlens.trace() as lens:
        weight = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([weight], lr=0.1)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = weight.square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
    assert calls(lens.trace(), "Tensor.square")


def test_a_step_that_fails_gives_the_mode_back_and_tells_what_was_changed() -> None:
    first, second = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))
    with tensorlens.trace() as lens:
        optimizer = torch.optim.SGD([first, second], lr=0.1)
        first.grad, second.grad = torch.ones(2), torch.ones(3)
        second.grad.resize_(2)
        with pytest.raises(RuntimeError, match="size of tensor"):
            optimizer.step()
        assert torch._C._len_torch_function_stack() == 1
        first.exp()
    trace = lens.trace()
    assert [call.writes[0].tensor for call in calls(trace, "SGD.step")] == [
        calls(trace, "Tensor.exp")[0].inputs[0].tensor
    ]
    assert [failure.op for failure in trace.failures] == ["SGD.step"]
    assert not calls(trace, "Tensor.exp")[0].within


def test_a_mode_of_the_program_above_ours_sees_the_step() -> None:
    seen: list[str] = []

    class Watching(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with tensorlens.trace() as lens, Watching():
        weight.grad = torch.ones(2)
        optimizer.step()
    assert "add_" in seen
    assert calls(lens.trace(), "Tensor.add_")


@pytest.mark.parametrize("of", ["optimizer", "module"])
def test_zero_grad_is_one_call_a_gradient_that_is_dropped(of: str) -> None:
    with tensorlens.trace() as lens:
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        owner: Any = optimizer if of == "optimizer" else net
        owner.zero_grad()
        net(torch.ones(1, 3)).sum().backward()
        owner.zero_grad()
        net(torch.ones(1, 3)).sum().backward()
        owner.zero_grad(set_to_none=False)
    trace = lens.trace()
    assert len(calls(trace, "Tensor.grad.__set__")) == 2
    assert len(calls(trace, "Tensor.zero_")) == 2
    assert all(call.outputs == () and call.writes == () for call in calls(trace, "Tensor.grad.__set__"))


def test_an_optimizer_may_keep_anything_in_its_state() -> None:
    class Own(torch.optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {"lr": 0.1})

        def step(self, closure: Any = None) -> Any:
            state: Any = self.state
            state["steps"] = state.get("steps", 0) + 1
            for parameter in self.param_groups[0]["params"]:
                state[parameter] = parameter.detach().clone()
                parameter.data.add_(parameter.grad, alpha=-0.1)

    with tensorlens.trace() as lens:
        weight = nn.Parameter(torch.ones(2))
        optimizer = Own([weight])
        for _ in range(2):
            optimizer.zero_grad()
            weight.sum().backward()
            optimizer.step()
    assert weight.tolist() == pytest.approx([0.8, 0.8])
    assert len(lens.trace().inspection.steps) == 2


class OwnFlag(nn.Module):
    requires_grad = True


class HalfMade(nn.Module):
    def __init__(self) -> None:
        self.requires_grad = False
        super().__init__()


def test_a_flag_that_is_set_on_a_module_is_noted_with_its_parameters() -> None:
    with tensorlens.trace() as recording:
        net, own = model(), OwnFlag()
        own.layer = nn.Linear(2, 2)
        own.requires_grad = False
        HalfMade().requires_grad = False
        net.requires_grad = False  # type: ignore[assignment]
        net.requires_grad = False  # type: ignore[assignment]
    trace = recording.trace()
    assert validate(trace) == []

    (flag,) = trace.inspection.flags
    assert sorted(trace.tensors[number].shape for number in flag.tensors) == [(2, 4), (4, 3)]
