"""Checks the sentence about values with a graph that are computed before the steps and used after them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

ONCE = """\
scale, shift = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.tensor(0.5))
net = nn.Linear(2, 2)
zero = torch.zeros(())
table = torch.stack([torch.stack([zero, scale]), torch.stack([shift, zero])])  #!
opt = torch.optim.Adam([scale, shift, *net.parameters()], lr=0.01)
for _ in range(6):
    x = torch.randn(4, 2)
    loss = (net(x) @ table - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
VALUE = "torch.stack([torch.stack([zero, scale]), torch.stack([shift, zero])])"
MODULE = """\
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = nn.Parameter(torch.ones(2))
        self.table = self.build()

    def build(self):
        return torch.diag(-self.rates)  #!

    def forward(self, x):
        return x @ self.table.T


net = Table()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(6):
    x = torch.randn(4, 2)
    loss = (net(x) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
RETAINED = ONCE.replace(VALUE, "torch.diag(torch.stack([scale, shift]).exp())").replace(
    "backward()", "backward(retain_graph=True)"
)
CACHED = """\
class Softened(nn.Module):
    def forward(self, weight):
        return weight - weight.mean()  #!


net = nn.Linear(2, 2, bias=False)
nn.utils.parametrize.register_parametrization(net, 'weight', Softened())
opt = torch.optim.SGD(net.parameters(), lr=0.01)
with nn.utils.parametrize.cached():
    for _ in range(6):
        x = torch.randn(4, 2)
        loss = (net(x) - x).pow(2).mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
"""
LAZY = (
    ONCE.replace(f"table = {VALUE}", "table = None")
    .replace("  #!", "")
    .replace("    x =", f"    if table is None:\n        table = {VALUE}  #!\n    x =")
)
LOGGED = MODULE + "    with torch.no_grad():\n        print(net.build().diagonal())\n"
WRONG = {
    "at the top": (ONCE, "`scale` and `shift` once, before their first step"),
    "in a constructor": (MODULE, "`net.rates` once, before its first step"),
    "with saved tensors": (RETAINED, "`scale` and `shift` once, before their first step"),
    "for a whole loop by torch": (CACHED, "`net.parametrizations.weight.original` before its first step"),
    "in the first step": (LAZY, "`scale` and `shift` once, before their first step"),
    "made again to be shown": (LOGGED, "`net.rates` before its first step"),
}
REFRESH = "    opt.step()\n    if _ == 4:\n        table = " + VALUE
RIGHT = {
    "in each step": ONCE.replace("    x =", f"    table = {VALUE}\n    x ="),
    "in each call": MODULE.replace("x @ self.table.T", "x @ self.build().T"),
    "parameters that no optimizer holds": ONCE.replace("Adam([scale, shift, *", "Adam([*"),
    "a rate of zero": ONCE.replace("Adam([scale, shift, *net.parameters()]", (
        "SGD([{'params': [scale, shift], 'lr': 0.0}, {'params': net.parameters()}]")),
    "a view": MODULE.replace("torch.diag(-self.rates)", "self.rates.view(1, 2)").replace(
        "x @ self.table.T", "x * self.table"),
    "a view of a detached parameter": MODULE.replace("torch.diag(-self.rates)", "self.rates.detach()").replace(
        "x @ self.table.T", "x * self.table * self.rates"),
    "a product with zero": ONCE.replace(VALUE, "0.0 * (scale + shift)").replace("net(x) @", "net(x) +").replace(
        "backward()", "backward(retain_graph=True)"),
    "beside the values of now": ONCE.replace(".mean()", ".mean() + (torch.stack([scale, shift]) - 1).pow(2).sum()"),
    "an anchor": ONCE.replace(VALUE, "torch.stack([scale, shift])").replace(
        "(net(x) @ table - x)", "(net(x) * torch.stack([scale, shift]) - x)").replace(
        ".mean()", ".mean() + (torch.stack([scale, shift]) - table).sum().abs()"),
    "a name of the start": ONCE.replace("table", "table_init"),
    "computed anew at times": ONCE.replace("    opt.step()", REFRESH),
    "computed anew every 100 steps": LAZY.replace("if table is None:", "if _ % 100 == 0:"),
    "given anew": ONCE.replace("    opt.step()", f"    opt.step()\n    table.data = {VALUE}.detach()"),
    "written anew": ONCE.replace("    opt.step()", (
        f"    opt.step()\n    with torch.no_grad():\n        table.data.copy_({VALUE})")),
    "a warm start": ONCE.replace("    loss =", "    table = table.detach() * 0.9 + 0.1 * torch.diag(scale + x[0])\n"
        "    loss ="),
    "a state that goes on": ONCE.replace("net(x) @ table - x", "net(x) + state - x").replace(
        "    loss =", "    state = (state * 0.5 + x).detach() + scale\n    loss =").replace(
        "opt =", "state = scale + shift + zero\nopt =", 1),
    "two steps": ONCE.replace("range(6)", "range(2)"),
    "steps of the other model alone": ONCE.replace("    opt.step()", (
        "    opt.step() if _ == 0 else head.step()")).replace("for _", (
        "head = torch.optim.SGD(net.parameters(), lr=0.01)\nfor _")),
}  # fmt: skip
WORDS = "first step, and"


@pytest.mark.parametrize("name", WRONG)
def test_a_value_with_a_graph_from_before_the_steps_is_named(tmp_path: Path, name: str) -> None:
    script, words = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, script) if WORDS in each.text)
    assert words in found.text
    assert "uses this value after 5 steps of" in found.text
    assert found.labels[0].span.line == marked(script)


@pytest.mark.parametrize("name", RIGHT)
def test_other_values_with_a_graph_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
