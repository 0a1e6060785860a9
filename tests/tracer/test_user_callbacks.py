"""The user's functions that autograd calls back: what is recorded of them, and that they are left as they are."""

from __future__ import annotations

import copy
import functools
import pickle
import sys
import traceback
from collections import OrderedDict
from typing import Any

import pytest
import torch
from support.recording import traced
from torch import nn

import tensorlens
from tensorlens.records.callbacks import Registration, Run
from tensorlens.records.model import Trace


def text(trace: Trace, site: int | None) -> str:
    """The source text of a site of one line."""
    if site is None:
        return ""
    span = trace.sites[site].span
    return trace.sources[span.file].splitlines()[span.line - 1][span.column : span.end_column]


def registration(trace: Trace, run: Run) -> Registration:
    return trace.callbacks.registrations[run.registration]


def name(trace: Trace, run: Run) -> str:
    return trace.callbacks.functions[registration(trace, run).function].name


def scaled(gradient: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return gradient * factor


def choosing(gradient: torch.Tensor) -> torch.Tensor:
    if gradient.sum() > 100:
        return gradient
    return gradient + 1


class Scaling:
    def __call__(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 3

    def method(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 4


def loud(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args)

    return inner


HOOKS = {
    "function": (scaled, "gradient * factor"),
    "lambda": (lambda gradient: gradient * 5, "gradient * 5"),
    "partial": (functools.partial(scaled, factor=3.0), "gradient * factor"),
    "bound method": (Scaling().method, "gradient * 4"),
    "callable object": (Scaling(), "gradient * 3"),
    "decorated": (loud(scaled), "gradient * factor"),
    "several returns": (choosing, "gradient + 1"),
}


@pytest.mark.parametrize("kind", HOOKS)
def test_a_tensor_hook_is_followed_to_the_statement_that_returned(kind: str) -> None:
    hook, expression = HOOKS[kind]
    weight = torch.ones(2, requires_grad=True)

    def program() -> None:
        weight.register_hook(hook)
        (weight * 1).sum().backward()

    trace = traced(program)
    (run,) = trace.callbacks.runs
    assert (run.ended, registration(trace, run).kind) == ("returned", "tensor hook")
    assert text(trace, run.returned).removeprefix("return ") == expression
    assert text(trace, registration(trace, run).site) == "weight.register_hook(hook)"
    assert registration(trace, run).target == run_target(trace)
    assert [value.type for value in run.values] == ["Tensor"]
    assert sys.getprofile() is None


def run_target(trace: Trace) -> int:
    return next(tensor.id for tensor in trace.tensors if tensor.shape == (2,))


def test_hooks_are_the_users_own_objects() -> None:
    def program() -> None:
        weight = torch.ones(2, requires_grad=True)
        plain = torch.ones(2, requires_grad=True)
        handle = weight.register_hook(scaled)
        hooks: Any = weight._backward_hooks
        assert list(hooks.values()) == [scaled] == [hook for _, hook in hooks.items()]
        assert hooks[handle.id] is hooks.get(handle.id) is scaled
        assert isinstance(hooks, OrderedDict)
        assert type(pickle.loads(pickle.dumps(hooks))) is OrderedDict
        assert list(copy.deepcopy(hooks).values()) == [scaled]
        layer = nn.Linear(2, 2)
        layer.register_full_backward_hook(look)
        assert list(layer._backward_hooks.values()) == [look]
        pickle.loads(pickle.dumps(layer))
        handle.remove()
        (weight + plain).sum().backward()
        assert weight.grad is not None
        assert weight.grad.tolist() == [1.0, 1.0]

    session = tensorlens.trace()
    with session:
        program()
    assert session.trace().callbacks.runs == ()


def look(module: Any, before: Any, after: Any) -> None:
    return None


def test_no_frame_of_ours_is_in_a_users_traceback() -> None:
    texts: list[str] = []

    def raising(gradient: torch.Tensor) -> None:
        raise ValueError("mine")

    def program() -> None:
        weight = torch.ones(2, requires_grad=True)
        weight.register_hook(raising)
        try:
            weight.sum().backward()
        except ValueError:
            texts.append(traceback.format_exc())

    trace = traced(program)
    assert "in raising" in texts[0]
    assert "tensorlens/tracer" not in texts[0]
    assert [run.ended for run in trace.callbacks.runs] == ["raised"]


def test_a_hook_that_can_not_be_called_is_told_from_one_that_raises() -> None:
    def program() -> None:
        weight = torch.ones(2, requires_grad=True)
        weight.register_hook(lambda first, second: first)
        weight.sum().backward()

    trace = traced(program)
    assert [run.ended for run in trace.callbacks.runs] == ["refused"]
    (function,) = trace.callbacks.functions
    assert (function.least, function.most) == (2, 2)


class Outer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        return value * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 2


def test_a_custom_function_is_known_with_its_class_and_its_node() -> None:
    def program() -> None:
        Outer.apply(Outer.apply(torch.ones(2, requires_grad=True))).sum().backward()  # type: ignore[no-untyped-call]

    trace = traced(program)
    told = {function.name: text(trace, function.defined) for function in trace.callbacks.functions}
    assert told["Outer"] == "class Outer(torch.autograd.Function):"
    assert told["Outer.backward"].startswith("def backward(")
    assert [name(trace, run) for run in trace.callbacks.runs] == ["Outer.backward", "Outer.backward"]
    assert len({run.node for run in trace.callbacks.runs}) == 2
    assert {text(trace, run.returned) for run in trace.callbacks.runs} == {"return gradient * 2"}


def number(tensor: Any) -> Any:
    return 3


def test_module_node_post_accumulate_and_saved_tensor_hooks() -> None:
    def program() -> None:
        layer = nn.Linear(2, 2)
        layer.register_full_backward_pre_hook(lambda module, gradient: None)
        layer.register_full_backward_hook(look)
        layer.weight.register_post_accumulate_grad_hook(lambda parameter: None)
        total = layer(torch.ones(1, 2, requires_grad=True)).sum()
        total.grad_fn.register_hook(lambda inputs, outputs: None)
        total.backward()
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, number):
            kept = torch.ones(2, requires_grad=True).exp()
        kept.sum().backward()

    trace = traced(program)
    kinds = sorted({registration(trace, run).kind for run in trace.callbacks.runs})
    assert kinds == [
        "module backward hook",
        "module backward pre-hook",
        "node hook",
        "post-accumulate hook",
        "unpack hook",
    ]
    unpacked = trace.callbacks.runs[-1]
    assert ([value.type for value in unpacked.values], text(trace, unpacked.returned)) == (["int"], "3")


def test_what_a_pack_function_does_is_seen() -> None:
    def program() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.mul_(2), lambda tensor: tensor):
            torch.ones(2, requires_grad=True).exp()

    trace = traced(program)
    assert [registration(trace, run).kind for run in trace.callbacks.runs] == ["pack hook"]
    assert "Tensor.mul_" in [event.op for event in trace.events if hasattr(event, "op")]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, value: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"value": self.inner(value)}


@pytest.mark.filterwarnings("ignore")
def test_a_hooked_module_is_known_by_where_it_was_made_and_called() -> None:
    def program() -> None:
        block = Block()
        block.register_full_backward_hook(look)
        block.inner.register_full_backward_hook(look)
        block(torch.ones(1, 2, requires_grad=True))

    trace = traced(program)
    told = [(known.kind, text(trace, known.site), known.target) for known in trace.callbacks.registrations]
    assert ("module", "Block()", 0) in told
    assert ("module", "nn.Linear(2, 2)", 1) in told
    assert ("hooked forward", "block(torch.ones(1, 2, requires_grad=True))", 0) in told
    assert ("hooked forward", "self.inner(value)", 1) in told


def test_a_module_with_a_forward_hook_is_known_by_its_class() -> None:
    def program() -> None:
        layer = nn.Linear(2, 2)
        layer.register_forward_hook(look)
        layer.register_full_backward_hook(look)

    known = traced(program).callbacks
    told = [(each.kind, known.functions[each.function].name, each.target) for each in known.registrations]
    assert ("module of a forward hook", "Linear", 0) in told
    assert len(told) == 3


def test_operators_and_once_differentiable_are_known_by_their_lines() -> None:
    def program() -> None:
        @torch.library.custom_op("callbacks::tripled", mutates_args=())
        def tripled(value: torch.Tensor) -> torch.Tensor:
            return value * 3

        tripled.register_autograd(lambda ctx, gradient: gradient * 3)
        tripled(torch.ones(2, requires_grad=True)).sum().backward()

        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient

    trace = traced(program)
    kinds = [known.kind for known in trace.callbacks.registrations]
    assert kinds[:2] == ["operator callbacks.tripled", "backward of callbacks.tripled"]
    assert kinds[-1] == "once differentiable"
    (run,) = trace.callbacks.runs
    assert text(trace, run.returned) == "gradient * 3"
    assert run.node is not None
