"""The caller's line of a helper or a layer is named where the run establishes it, and only there."""

from __future__ import annotations

import pytest
from support.silent import Run, run  # noqa: F401

from tensorlens.diagnostics import diagnose

UPDATES = """
import torch

def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()

def learn(one, other):
    x = torch.ones(1, 2)
    hidden = one(x)
    value = hidden.sum()
    policy = other(hidden).sum() + one(hidden).sum()
    {first}
    {second}

def main():
    one, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (one, other)]
    learn.optimizers = optimizers
    learn(one, other)

main()
"""
TWICE = UPDATES.format(
    first="update(learn.optimizers[0], value)",
    second="update(learn.optimizers[1], policy)",
)
INLINE = UPDATES.format(
    first="learn.optimizers[0].step()",
    second="policy.backward()",
).replace("    value = hidden.sum()\n", "    value = hidden.sum()\n    value.backward(retain_graph=True)\n")
LAYER = """
import torch
class Gate(torch.nn.Module):
    def forward(self, x):
        y = x.sigmoid()
        return y.{change}(0.5)
gate = Gate()
w = torch.ones(2, requires_grad=True)
first = gate(w)
middle = first.exp()
second = gate(middle)
last = second.exp()
last.sum().backward()
"""


def called(run: Run, text: str) -> list[tuple[int, str]]:  # noqa: F811
    _, trace = run(text)
    (found,) = (each for each in diagnose(trace) if each.severity == "error")
    return [(label.span.line, label.text) for label in found.labels if label.role == "called_here"]


def test_the_calls_of_one_function_that_led_to_the_change_and_to_the_failure(run: Run) -> None:  # noqa: F811
    assert called(run, TWICE) == [(13, "line 6 runs inside this call"), (14, "line 5 runs inside this call")]


def test_lines_of_one_function_need_no_caller(run: Run) -> None:  # noqa: F811
    assert called(run, INLINE) == []


@pytest.mark.parametrize("change", ["mul_"])
def test_the_call_of_a_layer_that_runs_in_several_places(run: Run, change: str) -> None:  # noqa: F811
    (line, text), *_ = called(run, LAYER.format(change=change))
    assert (line, text) == (10, "line 5 runs inside this call")


def test_a_call_that_the_run_does_not_establish_is_not_named(run: Run) -> None:  # noqa: F811
    text = LAYER.format(change="mul_").replace("second = gate(middle)", "third, second = gate(first), gate(middle)")
    assert all(line != 8 for line, _ in called(run, text))
    assert called(run, text.replace("middle = first.exp()", "middle = first")) == []
