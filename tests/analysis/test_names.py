"""Tests the names of tensors: parameters by their path, results without a name by the expression that made them."""

from __future__ import annotations

import pytest
from support.silent import Run, run  # noqa: F401

from tensorlens.analysis.naming.names import names_of
from tensorlens.records.model import Call, Trace

NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 2))
    def forward(self, x):
        return self.layers(x + 1)
"""


def calls(trace: Trace, op: str) -> list[Call]:
    return [event for event in trace.events if isinstance(event, Call) and event.op == op]


HELPER = """
def freeze(module):
    for p in module.parameters():
        p.requires_grad_(False)
def main():
    net = Net()
    freeze(net)
    torch.optim.SGD(net.parameters())
main()
"""
WEIGHTS = ["`net.layers[0].weight`", "`net.layers[0].bias`", "`net.layers[2].weight`", "`net.layers[2].bias`"]


@pytest.mark.parametrize(
    ("text", "op", "expected"),
    [
        ("net = Net()\nfor p in net.parameters():\n    p.requires_grad_(False)", "Tensor.requires_grad_", WEIGHTS),
        (
            "net = Net()\nparams = list(net.parameters())\nfor p in params:\n    p.data.zero_()",
            "Tensor.data.__get__",
            WEIGHTS,
        ),
        (
            HELPER,
            "Tensor.requires_grad_",
            WEIGHTS,
        ),
        (
            "net = Net()\nnet(torch.ones(2)).sum().backward()\nfor p in net.parameters():\n    p.grad.zero_()",
            "Tensor.zero_",
            [f"{name[:-1]}.grad`" for name in WEIGHTS],
        ),
        ("w = torch.nn.Parameter(torch.ones(2))\nw.exp()", "Tensor.exp", ["`w`"]),
        ("x = torch.ones(2)\nfor row in x:\n    row.exp()", "Tensor.exp", ["`row`", "`row`"]),
        ("a = torch.ones(2)\nb = a\nb.exp()", "Tensor.exp", ["`b`"]),
    ],
)
def test_an_operand_is_named_by_its_line_and_a_parameter_by_its_path(
    run: Run,  # noqa: F811
    text: str,
    op: str,
    expected: list[str],
) -> None:
    ran, trace = run(NET + text)
    assert ran.returncode == 0, ran.stderr
    names = names_of(trace)
    assert [names.quoted(call.inputs[0].tensor, call.index) for call in calls(trace, op)] == expected


@pytest.mark.parametrize(
    ("text", "op", "on_its_line", "later"),
    [
        (
            "y = torch.ones(2)\nz = (y + 1).exp()\nz.abs()",
            "Tensor.add",
            "`y + 1`",
            "the tensor made by `y + 1` (line 9)",
        ),
        ("y = torch.ones(2)\nz = y[0].exp()\nz.abs()", "Tensor.__getitem__", "`y[0]`", "`y[0]`"),
        (
            "y = torch.ones(2)\nz = torch.where(y > torch.zeros(2), torch.full((2,), 5), y * 100).exp()\nz.abs()",
            "torch.where",
            "`torch.where(...)`",
            "the tensor made by `torch.where(...)` (line 9)",
        ),
        ("y = torch.ones(2)\nz = torch.ones(3)\nz.abs()", "torch.ones", "`y`", "`y`"),
    ],
)
def test_a_result_without_a_name_is_named_by_what_made_it(
    run: Run,  # noqa: F811
    text: str,
    op: str,
    on_its_line: str,
    later: str,
) -> None:
    ran, trace = run(NET + text)
    assert ran.returncode == 0, ran.stderr
    made, names = calls(trace, op)[0], names_of(trace)
    tensor, after = made.outputs[0].tensor, calls(trace, "Tensor.abs")[0].index
    assert (names.quoted(tensor, made.index), names.quoted(tensor, after)) == (on_its_line, later)
    assert names.quoted(tensor) == later


def test_a_module_named_like_an_op_is_not_the_op(run: Run) -> None:  # noqa: F811
    """`self.linear(x)` may be anything; `F.linear(x, w)` is the op."""
    _, trace = run(
        """
        import torch
        import torch.nn.functional as F
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
            def forward(self, x):
                return self.linear(x)
        net = Net()
        net(torch.ones(2))
        F.linear(torch.ones(2), torch.ones(2, 2))
        """
    )
    syntax = names_of(trace).syntax
    direct = [syntax.is_direct(trace.sites[call.site], call.op) for call in calls(trace, "nn.functional.linear")]
    assert direct == [False, False, True]
