"""Checks what findings say about the line that ended the history of a value, and the line that each help changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from support.first_help import Programs, lines_of
from support.warm import Warm

# name: a program; a part of the title; then for each help its line and a part of its text
PROGRAMS = {
    "switched-off-by-a-call": (
        """
        import torch
        def validate():
            torch.set_grad_enabled(False)
        w = torch.ones(2, requires_grad=True)
        validate()
        loss = (w * 2).sum()
        loss.backward()
        """,
        "gradients were switched off",
        [(4, "use `with torch.no_grad():` around what needs no gradient")],
    ),
    "in-a-block-through-a-function": (
        """
        import torch
        w = torch.ones(2, requires_grad=True)
        def forward():
            return (w * 2).sum()
        with torch.no_grad():
            print("evaluates")
            loss = forward()
        loss.backward()
        """,
        "gradients were switched off",
        [(8, "move this, and what is computed from it, out of the `no_grad` block")],
    ),
    "frozen-with-the-new-head": (
        """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        def freeze(module):
            for p in module.parameters():
                p.requires_grad = False
        freeze(net)
        opt = torch.optim.SGD(net[1].parameters(), lr=0.1)
        net(torch.ones(1, 2)).sum().backward()
        """,
        "`net[1].weight` and `net[1].bias` are frozen",
        [(8, "let `net[1]` require grad again before it"), (7, "do not freeze `net[1].weight` and `net[1].bias` here")],
    ),
    "items-in-a-list": (
        """
        import torch
        w = torch.ones(2, requires_grad=True)
        losses = []
        for factor in (1.0, 2.0):
            part = (w * factor).sum()
            losses.append(part.item())
        loss = torch.tensor(losses).mean()
        loss.backward()
        """,
        "`part.item()` is a plain number",
        [
            (
                7,
                "keep `part` as a tensor here, and on line 8 use `torch.stack(losses)` in place of",
            )
        ],
    ),
    "a-sample-of-whole-numbers": (
        """
        import torch
        logits = torch.zeros(3, requires_grad=True)
        action = torch.distributions.Categorical(logits=logits).sample()
        action.float().backward()
        """,
        "`Categorical.sample()` gives whole numbers",
        [(4, "a sample has no gradient: put its `log_prob()` times the reward into the loss")],
    ),
    "indices-beside-values": (
        """
        import torch
        scores = torch.rand(5, requires_grad=True)
        values, order = scores.topk(2)
        order.float().sum().backward()
        """,
        "the indices from `scores.topk(2)` are whole numbers",
        [(4, "use the values that it returns beside the indices")],
    ),
    "only-the-shape": (
        """
        import torch
        w = torch.rand(5, requires_grad=True)
        torch.zeros_like(w).sum().backward()
        """,
        "`torch.zeros_like(w)` takes only a shape",
        [(4, "compute the result from `w` itself")],
    ),
    "values-of-a-state-dict": (
        """
        import torch
        layer = torch.nn.Linear(2, 1)
        weight = layer.state_dict()["weight"]
        weight.sum().backward()
        """,
        "`Module.state_dict()` stopped the gradient",
        [(4, "use `layer.weight` itself")],
    ),
}


@pytest.fixture
def programs(warm: Warm, tmp_path: Path) -> Programs:
    return Programs(warm, tmp_path, "\n")  # the first line of each program is line 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_cut_and_the_line_to_change_are_named(name: str, programs: Programs) -> None:
    text, title, helps = PROGRAMS[name]
    finding = programs.error(text)
    assert title in finding.title
    assert [None if fix.place is None else fix.place.line for fix in finding.fixes] == [line for line, _ in helps]
    for fix, (_, words) in zip(finding.fixes, helps, strict=True):
        assert words in fix.title


def test_all_tensors_that_a_line_froze_are_listed(programs: Programs) -> None:
    finding = programs.error(PROGRAMS["frozen-with-the-new-head"][0])
    assert finding.detail == ("frozen: `net[0].weight`, `net[0].bias`, `net[1].weight`, `net[1].bias`",)


@pytest.mark.parametrize(
    "call",
    ["maps.argmax(1)", "torch.argmax(maps, dim=2)", "maps.argmax(dim=-3, keepdim=True)", "torch.argmin(maps, 0, True)"],
)
def test_the_mean_position_has_the_shape_of_the_position_and_a_gradient(call: str, programs: Programs) -> None:
    finding = programs.error(
        f"import torch\nmaps = torch.rand(2, 3, 4, requires_grad=True)\nplace = {call}\n"
        "place.float().sum().backward()\n",
    )
    code = re.search(r"`(.*)`", finding.fixes[0].title)
    assert code is not None
    torch.manual_seed(0)
    maps = (torch.rand(2, 3, 4) * 100).requires_grad_(True)
    names = {"maps": maps, "torch": torch}
    mean, place = eval(code[1], names), eval(call, names)
    assert mean.shape == place.shape
    assert torch.allclose(mean, place.float(), atol=0.5)
    mean.sum().backward()
    assert maps.grad is not None


def test_a_position_without_a_dimension_has_no_formula(programs: Programs) -> None:
    text = "import torch\nmaps = torch.rand(4, requires_grad=True)\nmaps.argmax().float().backward()\n"
    assert "softmax" not in programs.error(text).fixes[0].title


@pytest.mark.parametrize("reset", ["opt.zero_grad()", "w.grad = None"])
def test_a_gradient_that_was_reset_is_not_called_unreached(reset: str, programs: Programs) -> None:
    finding = programs.error(
        "import torch\nw = torch.ones(3, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
        f"w.sum().backward()\n{reset}\nprint(w.grad.norm())\n",
    )
    assert finding.title == "`w.grad` is None: it was reset, and no backward pass has run since"
    assert lines_of(finding, "cleared_here") == [6]
    assert [fix.place.line for fix in finding.fixes if fix.place is not None] == [6]


def test_a_reset_before_a_backward_pass_that_misses_the_leaf_is_not_the_cause(programs: Programs) -> None:
    finding = programs.error(
        "import torch\nw, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)\n"
        "w.sum().backward()\nw.grad = None\nv.sum().backward()\nprint(w.grad.norm())\n",
    )
    assert finding.title == "`w.grad` is None: backward started from nothing that uses `w`"


def test_the_gradient_of_a_computed_tensor_is_one_finding(programs: Programs) -> None:
    """PyTorch warns at `.grad` and then None has no `sign()`: that is one mistake."""
    (finding,) = programs.findings(
        "import torch\nx = torch.ones(3, requires_grad=True)\ny = x * 2\ny.sum().backward()\nprint(y.grad.sign())\n"
    )
    assert finding.code == "none-grad-attribute"
    assert finding.also == ("`y.grad` was read, and `y` is computed, not a leaf [nonleaf-grad-access]",)
    assert finding.title == "`y.grad` is None: `y` is computed, not a leaf"
    assert [fix.title for fix in finding.fixes] == [
        "call `y.retain_grad()` after this line",
        "or, for the gradient of the leaf, read `x.grad`",
    ]


@pytest.mark.parametrize("loss", ["torch.rand(3).sum()", "torch.tensor(2.0) * 1", "torch.ones(3).sum() * 2"])
def test_a_value_that_was_only_printed_is_not_the_cause(loss: str, programs: Programs) -> None:
    """Nothing that `item()` returned can have gone into such a loss."""
    text = f"import torch\nw = torch.ones(3, requires_grad=True)\nprint((w * 2).mean().item())\n({loss}).backward()\n"
    finding = programs.error(text)
    assert "no tensor that it was computed from requires grad" in finding.title
    assert finding.fixes[0].title.startswith("compute it from what is to be trained: `w` requires grad")


def test_tensors_without_names_are_counted(programs: Programs) -> None:
    text = "import torch\ndef made():\n    return torch.nn.Linear(2, 2).requires_grad_(False)\n"
    finding = programs.error(text + "made()(torch.ones(2)).sum().backward()\n")
    assert finding.title.endswith("2 tensors are frozen")


GATE = """
import torch
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, t):
        return x * (t > 0)
    @staticmethod
    def backward(ctx, g):
        return g, None
x, t = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
"""


def test_a_requested_gradient_that_a_custom_function_leaves_out(programs: Programs) -> None:
    found = programs.first(GATE + "y = Gate.apply(x, t).sum()\ntorch.autograd.grad(y, t)\n")
    assert found.title == "the gradient of `t` was asked for, but `Gate.backward` returns None for it"
    assert [fix.place.line for fix in found.fixes if fix.place] == [9, 12]


def test_none_from_a_custom_function_is_a_note_if_the_leaf_has_a_gradient(programs: Programs) -> None:
    one = programs.first(GATE + "Gate.apply(x, t).sum().backward()\n")
    both = programs.first(GATE + "(Gate.apply(x, t).sum() + t.pow(2).sum()).backward()\n")
    assert (one.code, one.severity) == ("custom-function-none-gradient", "warning")
    assert (both.code, both.severity) == ("custom-function-none-gradient", "note")


def test_none_for_a_value_is_a_note_if_the_leaves_that_it_is_computed_from_have_gradients(programs: Programs) -> None:
    """As in quantisation: the scale is computed from the weight, and its gradient is left out on purpose."""
    found = programs.first(GATE + "scale = x.abs().max()\n(Gate.apply(x, scale) + t).sum().backward()\n")
    assert (found.code, found.severity) == ("custom-function-none-gradient", "note")
    assert found.title == "`Gate.backward` gives no gradient for `scale`"


def test_an_operation_before_a_custom_function_is_not_where_the_path_ends(programs: Programs) -> None:
    """autograd does not see what is inside a list, so the value that the Function returns for it says nothing."""
    lists = GATE.replace("(ctx, x, t)", "(ctx, x, xs)").replace("(t > 0)", "(xs[0] > 0)")
    text = "k = t.exp()\nopt = torch.optim.SGD([x, t])\nGate.apply(x, [k]).sum().backward()\nopt.step()\n"
    (found,) = [each for each in programs.findings(lists + text) if each.code == "branch-detached"]
    assert found.title == "no gradient ever reached `t`: `Gate.apply(x, [k])` gives it no gradient"
    assert {label.span.line for label in found.labels if label.role == "graph_cut_here"} == {13}
    assert found.fixes[0].title == "pass `k` to `Gate.apply()` as an argument of its own, and return its gradient"


def test_the_edge_of_a_detached_tensor_has_the_cut_and_says_nothing_of_the_leaf(programs: Programs) -> None:
    found = programs.first(
        "import torch\nw = torch.ones(2, requires_grad=True)\nh = (w * 2).detach()\n"
        "torch.autograd.graph.get_gradient_edge(h)\n",
    )
    assert {(label.role, label.span.line) for label in found.labels} == {("rejected_here", 5), ("graph_cut_here", 4)}


def test_a_leaf_is_named_only_where_it_is_in_reach(programs: Programs) -> None:
    found = programs.first(
        "import torch\ndef prepare(x):\n    x = x.clone().requires_grad_()\n    return x * 2\n"
        "y = prepare(torch.ones(2))\ny.sum().backward()\ny.grad.sign()\n",
    )
    keep, leaf = found.fixes
    assert keep.place is not None
    assert (keep.place.line, keep.title) == (6, "call `y.retain_grad()` after this line")
    assert leaf.title == "or, for the gradient of the leaf, return `x` too, and read its `.grad`"
