"""Checks the sentence about derivatives of several outputs that are added up."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

MOTION = """\
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    t = torch.rand(16, 1, requires_grad=True)
    state = net(t)
    rate = torch.autograd.grad(state, t, grad_outputs=torch.ones_like(state), create_graph=True)[0]  #!
    wanted = torch.stack([state[:, 1], -state[:, 0]], 1)
    loss = (rate - wanted).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SUM = MOTION.replace("state, t, grad_outputs=torch.ones_like(state)", "state.sum(), t")
FLAT = SUM.replace("rand(16, 1,", "rand(16,").replace("net(t)", "net(t[:, None])")
EACH = (
    "rate = torch.cat([torch.autograd.grad(state[:, i : i + 1], t, torch.ones(16, 1), create_graph=True)[0] "
    "for i in range(2)], 1)"
)
WRONG = {
    "a difference": MOTION,
    "a loss": MOTION.replace("(rate - wanted).square().mean()", "nn.functional.mse_loss(wanted, rate)"),
    "ones of a shape": MOTION.replace("grad_outputs=torch.ones_like(state)", "torch.ones(16, 2)"),
    "a sum": SUM,
    "a sum of outputs times the input": SUM.replace("net(t)", "t * net(t)"),
    "sums of sums": SUM.replace("state.sum()", "torch.sum(state, dim=0).sum()"),
    "times a number": SUM.replace("(rate - wanted)", "(2.0 * -rate - wanted)"),
    "times another number": SUM.replace("(rate - wanted)", "(rate / 4 - wanted)"),
    "times a column": SUM.replace("(rate - wanted)", "((1 + t) * rate - wanted)"),
    "one of two inputs": SUM.replace(", t, create", ", (t, net[0].bias), create"),
    "one dimension": FLAT.replace("(rate - wanted)", "(rate.unsqueeze(1) - wanted)"),
}
RIGHT = {
    "one by one": MOTION.replace(
        "rate = torch.autograd.grad(state, t, grad_outputs=torch.ones_like(state), create_graph=True)[0]", EACH),
    "each sum": SUM.replace("torch.autograd.grad(state.sum(), t, create_graph=True)[0]", (
        "torch.cat([torch.autograd.grad(s.sum(), t, create_graph=True)[0] for s in state.unbind(1)], 1)")),
    "the sum of a product": SUM.replace("state.sum(), t", "(state * torch.tensor([0.3, 0.7])).sum(), t"),
    "an energy": SUM.replace("state.sum(), t", "(state**2).sum(), t"),
    "a derivative of one of the columns": SUM.replace("state.sum()", "state[:, 0].sum()"),
    "one output": MOTION.replace("Linear(8, 2)", "Linear(8, 1)").replace(
        "torch.stack([state[:, 1], -state[:, 0]], 1)", "-state"),
    "a sum that is meant": MOTION.replace("(rate - wanted)", "(rate[:, 0] - wanted.sum(1))"),
    "a mean": SUM.replace("(rate - wanted)", "(rate / 2 - wanted)"),
    "a mean by a size": SUM.replace("create_graph=True)[0]", "create_graph=True)[0] / state.shape[1]"),
    "other weights": MOTION.replace("torch.ones_like(state)", "torch.randn_like(state)"),
}  # fmt: skip
WORDS = "gives one derivative for each element of"


@pytest.mark.parametrize("name", WRONG)
def test_a_sum_of_derivatives_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    shape = (16,) if name == "one dimension" else (16, 1)
    assert f"element of `t`, of shape {shape}: the sum over the 2 columns of `state`" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_derivatives_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
