"""Checks the sentence about trained weights of a loss that only fall."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

PLAIN = """\
net = nn.Linear(3, 2)
w = nn.Parameter(torch.tensor(1.0))
opt = torch.optim.Adam([*net.parameters(), w], lr=0.01)
for _ in range(5):
    x, y = torch.randn(8, 3), torch.randn(8, 2)
    out = net(x)
    fit = nn.functional.mse_loss(out, y)
    loss = w * fit + 0.1 * out.abs().mean()  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LIST = """\
net = nn.Linear(3, 2)
raw = nn.Parameter(torch.zeros(2))
opt = torch.optim.Adam([*net.parameters(), raw], lr=0.01)
for _ in range(5):
    x, y = torch.randn(8, 3), torch.randn(8, 2)
    out = net(x)
    terms = torch.stack([(out - y).pow(2).mean(), out.abs().mean()])
    loss = (raw.exp() * terms).sum()  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "one weight": PLAIN,
    "a weight of a square": PLAIN.replace("nn.functional.mse_loss(out, y)", "((out - y) ** 2).sum(1).mean()"),
    "a weight of a cross entropy": PLAIN.replace("mse_loss(out, y)", "cross_entropy(out, y.argmax(1))"),
    "a weight by exp(-s)": PLAIN.replace("w * fit", "torch.exp(-w) * fit"),
    "softplus": PLAIN.replace("w * fit", "fit * nn.functional.softplus(w)"),
    "half of it": PLAIN.replace("w * fit", "0.5 * (w * fit)"),
    "several weights": LIST,
    "elements of one": LIST.replace("(raw.exp() * terms).sum()", "raw[0] * terms[0] + raw[1] * terms[1]"),
}  # fmt: skip
DUAL = """\
net, dual = nn.Linear(3, 2), nn.Parameter(torch.tensor(0.1))
opt, up = torch.optim.Adam(net.parameters(), lr=0.01), torch.optim.SGD([dual], lr=0.05)
for _ in range(5):
    x, y = torch.randn(8, 3), torch.randn(8, 2)
    out = net(x)
    excess = (out.abs().mean() - 0.3).relu()
    opt.zero_grad()
    up.zero_grad()
    ((out - y).square().mean() + dual.detach() * excess).backward()
    (-dual * excess.detach()).backward()
    opt.step()
    up.step()
"""
RIGHT = {
    "dual ascent": DUAL.replace("excess.detach()", "(net(x).abs().mean() - 0.3).relu()"),
    "dual ascent of softplus": DUAL.replace("excess.detach()", "(net(x).abs().mean() - 0.3).relu()").replace(
        "-dual", "-nn.functional.softplus(dual)"),
    "a logarithm holds it": PLAIN.replace("w * fit", "w * fit - w.log()"),
    "uncertainty": PLAIN.replace("w * fit", "torch.exp(-w) * fit + w"),
    "a penalty holds it": PLAIN.replace("w * fit", "w * fit + (w - 1).square()"),
    "weights that sum to one": LIST.replace("raw.exp()", "raw.softmax(0)"),
    "ascent": PLAIN.replace("[*net.parameters(), w], lr=0.01)", "net.parameters(), lr=0.01)\n"
        "up = torch.optim.Adam([w], lr=0.01, maximize=True)").replace("opt.step()", "opt.step()\n    up.step()"),
    "ascent of a group": PLAIN.replace("[*net.parameters(), w], lr=0.01", (
        "[{'params': net.parameters()}, {'params': [w], 'maximize': True}], lr=0.01")),
    "a rate of 0": PLAIN.replace("[*net.parameters(), w], lr=0.01", (
        "[{'params': net.parameters()}, {'params': [w], 'lr': 0.0}], lr=0.01")),
    "a limit": PLAIN.replace("w * fit", "w.clamp(min=0.5) * fit"),
    "a gradient that is turned": PLAIN.replace("    opt.step()", "    w.grad.neg_()\n    opt.step()"),
    "a hook that turns it": PLAIN.replace("opt = ", "w.register_hook(lambda g: -g)\nopt = "),
    "a weight that is set": PLAIN + "    with torch.no_grad():\n        w.clamp_(min=0.5)\n",
    "a weight of a reward": PLAIN.replace("w * fit", "fit - w * (out.sigmoid() * y.sigmoid()).mean()"),
    "a term that may be negative": PLAIN.replace("w * fit", "w * out.mean() + fit"),
    "a term that nothing trains": PLAIN.replace("w * fit", "w * y.square().mean() + fit"),
    "a gain of the net": PLAIN.replace("net(x)", "w * net(x)").replace("w * fit", "w * fit.detach() + fit"),
    "a frozen weight": PLAIN.replace("torch.tensor(1.0))", "torch.tensor(1.0), requires_grad=False)"),
}  # fmt: skip
WORDS = "to lower the weight alone lowers the loss"


@pytest.mark.parametrize("name", WRONG)
def test_a_weight_that_nothing_holds_up_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_weight_with_another_use_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
