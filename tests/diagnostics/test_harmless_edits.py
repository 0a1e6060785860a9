"""A help carries an edit only where the edited program runs, and uses the gradients that its author meant.

Each program looks like one for which a help has an edit, and differs in one point that would make that edit wrong.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.first_help import Programs
from support.warm import Warm

from tensorlens.records.edits import edited
from tensorlens.records.report import Diagnostic

_START = "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
_NET = f"{_START}net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\n"
_OPT = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
_PAIR = f"""{_START}a, b = nn.Linear(3, 3), nn.Linear(3, 3)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
x = torch.ones(2, 3)
"""
_TRAIN = """for step in range(4):
    ...opt.zero_grad()
    net(torch.ones(5, 3)).pow(2).mean().backward()
    opt.step()
"""
_CELL = f"""{_START}cell = nn.GRUCell(3, 4)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
"""
_PASS = """    opt.zero_grad()
    loss.backward()
    opt.step()
print(cell.weight_hh)
"""


def _class(made: str, used: str, *, before: str = "", behind: str = "") -> str:
    return f"""{_START}class Net(nn.Module):
    def __init__(self):
        {before}super().__init__()
        self.body = nn.Linear(3, 4)
        {made}
    def forward(self, x):
        x = self.body(x)
{used}        return x
{behind}net = Net()
{_OPT}{_TRAIN.replace("...", "")}"""


_LOOP = "        for layer in self.layers:\n            x = layer(x)\n"

RUNS = {  # the first help's edit: the program runs with it, and the finding is gone
    "a dict with a number": f"""{_CELL}state = {{"h": torch.zeros(5, 4), "t": 0}}
for step in range(3):
    state["h"] = cell(torch.randn(5, 3), state["h"])
    state["t"] += 1
    loss = state["h"].pow(2).mean()
{_PASS}""",
    "a tuple with a number": f"""{_CELL}state = (torch.zeros(5, 4), 0)
for step in range(3):
    state = (cell(torch.randn(5, 3), state[0]), state[1] + 1)
    loss = state[0].pow(2).mean()
{_PASS}""",
    "a list with None": f"""{_CELL}states = [torch.zeros(5, 4), None]
for step in range(3):
    states[0] = cell(torch.randn(5, 3), states[0])
    loss = states[0].pow(2).mean()
{_PASS}""",
    "tabs, and a new parameter": f"""{_START}def main():
\tnet = nn.Linear(3, 3)
\t{_OPT}\tprint(opt)
\tnet.weight = nn.Parameter(torch.eye(3))
\tfor step in range(4):
\t\topt.zero_grad()
\t\tnet(torch.ones(5, 3)).pow(2).mean().backward()
\t\topt.step()
main()
""",
    "tabs, and an update": f"""{_START}def main():
\tw = torch.ones(3, requires_grad=True)
\tfor step in range(3):
\t\tloss = (w * w).sum()
\t\tloss.backward()
\t\tw -= 0.1 * w.grad
\t\tw.grad = None
main()
""",
    "a gradient that is printed after the update": f"""{_START}w = torch.ones(3, requires_grad=True)
for step in range(3):
    (w * w).sum().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    print(step, w.grad.norm())
""",
    "optimizers of a loop": f"""{_START}net = nn.Linear(3, 1)
opts = [torch.optim.SGD([net.weight], lr=0.1), torch.optim.SGD([net.bias], lr=0.1)]
for step in range(4):
    net(torch.randn(5, 3)).pow(2).mean().backward()
    for opt in opts:
        opt.step()
""",
    "a decorated function named as that of a module": f"""{_START}w = torch.ones(3, requires_grad=True)
@torch.no_grad()
def forward(x):
    return w * x
forward(torch.ones(3)).sum().backward()
""",
    "layers added to a list": _class(
        "self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]",
        "        for layer in [torch.tanh] + self.layers:\n            x = layer(x)\n",
    ),
    "a key that a module has": _class(
        'self.layers = {"type": nn.Linear(4, 4)}', '        x = self.layers["type"](x)\n'
    ),
    "a method that a dict has": _class('self.layers = {"a": nn.Linear(4, 4)}', '        x = self.layers.get("a")(x)\n'),
    "layers or None": _class(
        "self.layers = [nn.Linear(4, 4) if i else None for i in range(3)]",
        "        for layer in self.layers:\n            x = x if layer is None else layer(x)\n",
    ),
}

NO_EDIT = {  # the code, and a program for which no help of that finding has an edit
    "a frozen class": (
        "backward-through-freed-graph",
        f"""from dataclasses import dataclass, replace
{_CELL}@dataclass(frozen=True)
class State:
    h: torch.Tensor
state = State(torch.zeros(5, 4))
for step in range(3):
    state = replace(state, h=cell(torch.randn(5, 3), state.h))
    loss = state.h.pow(2).mean()
{_PASS}""",
    ),
    "a result that the loop replaces": (
        "backward-through-freed-graph",
        f"""{_CELL}h = cell(torch.ones(5, 3), torch.ones(5, 4)).tanh()
for step in range(3):
    h = h + 1
    loss = h.mean()
{_PASS}""",
    ),
    "a function for a target too": (
        "branch-detached",
        f"""{_PAIR}@torch.no_grad()
def encode(x):
    return a(x).tanh()
for step in range(3):
    target = encode(x + 0.1)
    loss = (b(encode(x)) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "a module for a target too": (
        "branch-detached",
        f"""{_START}class Enc(nn.Linear):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x).tanh()
enc, b = Enc(3, 3), nn.Linear(3, 3)
opt = torch.optim.SGD([*enc.parameters(), *b.parameters()], lr=0.1)
for step in range(3):
    target = enc(torch.ones(2, 3))
    loss = (b(enc(torch.zeros(2, 3))) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "an activation that a dict holds": (
        "no-grad-write-not-in-gradient",
        f"""{_PAIR}for step in range(3):
    h = a(x)
    outs = {{"h": h}}
    with torch.no_grad():
        h *= 2
    loss = b(h).pow(2).mean() + outs["h"].pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "an activation of the function around": (
        "no-grad-write-not-in-gradient",
        f"""{_PAIR}def train():
    h = a(x)
    def squash():
        with torch.no_grad():
            h.mul_(2)
    squash()
    loss = b(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
train()
""",
    ),
    "an optimizer in a list": (
        "optimizer-holds-replaced-parameter",
        f"{_NET}{_OPT}opts = [opt]\n" + _TRAIN.replace("...", "if step == 2:\n        net[2] = nn.Linear(4, 1)\n    "),
    ),
    "a list of parameters": (
        "optimizer-holds-replaced-parameter",
        f"{_NET}params = list(net.parameters())\nopt = torch.optim.SGD(params, lr=0.1)\nnet[2] = nn.Linear(4, 1)\n"
        + _TRAIN.replace("...", ""),
    ),
    "a list of parameters, later": (
        "optimizer-holds-replaced-parameter",
        f"{_NET}params = [p for p in net.parameters()]\nopt = torch.optim.SGD(params, lr=0.1)\n"
        + _TRAIN.replace("...", "if step == 2:\n        net[2] = nn.Linear(4, 1)\n    "),
    ),
    "a second group of parameters": (
        "optimizer-holds-replaced-parameter",
        f"{_NET}{_OPT}scale = nn.Parameter(torch.ones(1))\nopt.add_param_group({{'params': [scale]}})\n"
        + _TRAIN.replace("...", "if step == 2:\n        net[2] = nn.Linear(4, 1)\n    "),
    ),
    "another learning rate": (
        "optimizer-holds-replaced-parameter",
        f"{_NET}{_OPT}opt.param_groups[0]['lr'] = 0.01\n"
        + _TRAIN.replace("...", "if step == 2:\n        net[2] = nn.Linear(4, 1)\n    "),
    ),
    "gradients that add up": (
        "optimizer-step-not-called",
        f"""{_NET}{_OPT}def run():
    loss = net(torch.ones(5, 3)).pow(2).mean()
    (loss / 2).backward()
for step in range(4):
    opt.zero_grad()
    run()
    run()
""",
    ),
    "added gradients that are printed": (
        "gradient-accumulates-without-zero-grad",
        f"""{_NET}{_OPT}for step in range(3):
    for part in range(2):
        net(torch.ones(5, 3)).pow(2).mean().backward()
    opt.step()
    print(sum(p.grad.norm() for p in net.parameters()))
""",
    ),
    "results that are read after the loop": (
        "backward-through-freed-graph",
        f"""{_NET}{_OPT}losses = []
for step in range(4):
    losses.append(net(torch.randn(5, 3)).pow(2).mean())
    if step % 2:
        opt.zero_grad()
        sum(losses).backward()
        opt.step()
print(len(losses), float(losses[0]))
""",
    ),
    "a number that is rounded": (
        "detached-loss-made-to-require-grad",
        f"""{_NET}{_OPT}log = []
for step in range(3):
    total = 0.0
    for x in torch.randn(4, 3):
        value = float(net(x).pow(2).mean())
        log.append(round(value, 3))
        total += value
    loss = torch.tensor(total / 4, requires_grad=True)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "a number of a pair, that is rounded": (
        "detached-loss-made-to-require-grad",
        f"""{_NET}{_OPT}log = []
for step in range(3):
    total = 0.0
    for x in torch.randn(4, 3):
        value, name = float(net(x).pow(2).mean()), "loss"
        log.append((name, round(value, 3)))
        total += value
    loss = torch.tensor(total / 4, requires_grad=True)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "losses that become doubles": (
        "branch-detached",
        f"""{_NET}{_OPT}for step in range(3):
    losses = [net(torch.randn(3)).pow(2).mean() for _ in range(3)]
    loss = torch.tensor(losses, dtype=torch.float64, requires_grad=True).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "results that a loop goes over": (
        "backward-through-freed-graph",
        f"""{_CELL}results = [cell(torch.ones(5, 3), torch.ones(5, 4)).tanh() for _ in range(3)]
for epoch in range(2):
    for each in results:
        loss = each.mean()
{_PASS.replace("    ", "        ")}""",
    ),
    "layers and functions": (
        "parameter-not-registered",
        _class("self.layers = [nn.Linear(4, 4), torch.tanh]", _LOOP),
    ),
    "pairs of layers": (
        "parameter-not-registered",
        _class(
            "self.layers = [(nn.Linear(4, 4), nn.Tanh())]",
            "        for layer, act in self.layers:\n            x = act(layer(x))\n",
        ),
    ),
    "a function that is appended": (
        "parameter-not-registered",
        _class("self.layers = [nn.Linear(4, 4)]\n        self.layers.append(torch.tanh)", _LOOP),
    ),
    "layers before the constructor of Module": (
        "parameter-not-registered",
        _class("", _LOOP, before="self.layers = [nn.Linear(4, 4)]\n        "),
    ),
}

_SIGMOIDS = "hs = [a(x).sigmoid(), b(x).sigmoid()]\n"
_STEP = "opt.zero_grad()\nloss.backward()\nopt.step()\nprint([p.grad for m in (a, b) for p in m.parameters()])\n"
_NETS = """def grads():
    print([p.grad for p in net.parameters()])
"""

SAME = {  # the program, and what changes in it to repair it: the first help gives the same gradients
    "a step for the gradients of another line": (
        f"""{_NET}{_NETS}head = nn.Linear(1, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
opt_head = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(5, 3)
    opt.zero_grad()
    net(x).abs().mean().backward()
    grads()
    loss = head(net(x)).pow(2).mean()
    opt.step()
    opt_head.zero_grad()
    loss.backward()
    opt_head.step()
print([p for p in net.parameters()])
""",
        [("    loss = head(net(x)).pow(2).mean()\n    opt.step()\n",
          "    opt.step()\n    loss = head(net(x)).pow(2).mean()\n")],
    ),
    "a step that clears afterwards": (
        f"""{_NET}{_NETS}{_OPT}for step in range(3):
    loss = net(torch.randn(5, 3)).pow(2).mean()
    opt.step()
    opt.zero_grad()
    loss.backward()
    grads()
""",
        [("    opt.step()\n    opt.zero_grad()\n    loss.backward()\n",
          "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n")],
    ),
    "a shorter list beside": (
        f"{_PAIR}{_SIGMOIDS}for h, s in zip(hs, (2.0,)):\n    h.mul_(s)\nloss = sum(h.sum() for h in hs)\n{_STEP}",
        [("for h, s in zip(hs, (2.0,)):\n    h.mul_(s)\n", "hs[0] = hs[0] * 2\n")],
    ),
    "a list as long": (
        (f"{_PAIR}{_SIGMOIDS}gs = [2.0 for _ in hs]\nfor h, s in zip(hs, gs):\n    h.mul_(s)\n"
        f"loss = sum(each.sum() for each in hs)\n{_STEP}"),
        [("for h, s in zip(hs, gs):\n    h.mul_(s)\n", "hs = [h * 2 for h in hs]\n")],
    ),
    "a loop variable that is used below": (
        f"{_PAIR}{_SIGMOIDS}for h in hs:\n    h.mul_(2)\nloss = h.sum() + hs[0].sum()\n{_STEP}",
        [("for h in hs:\n    h.mul_(2)\n", "hs = [h * 2 for h in hs]\nh = hs[-1]\n")],
    ),
    "an item with a name": (
        (f"{_PAIR}one = a(x).sigmoid()\nhs = (one, b(x).sigmoid())\nfor h in hs:\n    h.mul_(2)\n"
        f"loss = one.sum() + hs[1].sum()\n{_STEP}"),
        [("for h in hs:\n    h.mul_(2)\n", "hs = [h * 2 for h in hs]\none = hs[0]\n")],
    ),
    "results that a function reads from a list": (
        (f"{_PAIR}outs = []\ndef finish():\n    return torch.stack(outs).sum()\ndef run():\n    global outs\n"
        f"    s = a(x).sigmoid()\n    outs = outs + [s]\n    s *= 0.5\nrun()\nrun()\nloss = finish()\n{_STEP}"),
        [("    s = a(x).sigmoid()\n", "    s = a(x).sigmoid() * 0.5\n"), ("    s *= 0.5\n", "")],
    ),
    "a row of a parameter": (
        (f"{_START}w = torch.randn(4, 3, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
        "for step in range(3):\n    for k, row in enumerate(w):\n        row /= row.norm()\n"
        "    loss = (w @ torch.ones(3)).pow(2).sum()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
        "    print(w.grad)\n"),
        [("    for k, row in enumerate(w):\n        row /= row.norm()\n",
          "    w.data /= w.data.norm(dim=1, keepdim=True)\n")],
    ),
    "old values that are read": (
        (f"{_START}net = nn.Linear(3, 3)\n{_NETS}{_OPT}old = net.weight\nnet.weight = nn.Parameter(torch.eye(3))\n"
        "for step in range(4):\n    opt.zero_grad()\n"
        "    (net(torch.ones(5, 3)).pow(2).mean() + (net.weight - old.detach()).pow(2).sum()).backward()\n"
        "    grads()\n    opt.step()\n"),
        [(_OPT, ""), ("nn.Parameter(torch.eye(3))\n", f"nn.Parameter(torch.eye(3))\n{_OPT}")],
    ),
}  # fmt: skip


_SAYS_SO = re.compile("new values|stays as it was")


@pytest.fixture
def programs(warm: Warm, tmp_path: Path) -> Programs:
    return Programs(warm, tmp_path)


def _found(programs: Programs, program: str, code: str = "") -> Diagnostic:
    return next(each for each in programs.findings(program) if not code or each.code == code)


@pytest.mark.parametrize("name", RUNS)
def test_with_the_first_help_the_program_runs(name: str, programs: Programs) -> None:
    found = _found(programs, RUNS[name])
    repaired = programs.repaired(RUNS[name], found)
    assert repaired
    ast.parse(repaired)
    assert programs.outputs(repaired)[1] == ""
    assert found.code not in {each.code for each in programs.findings(repaired)}


@pytest.mark.parametrize("name", NO_EDIT)
def test_where_an_edit_would_be_wrong_the_help_has_none(name: str, programs: Programs) -> None:
    code, program = NO_EDIT[name]
    found = _found(programs, program, code)
    assert found.fixes
    assert not any(each.edits for each in found.fixes)


APART = {  # two passes whose gradients a single pass does not give
    "gradients that are returned": ("g = torch.autograd.grad(one.sum(), net[0].weight)[0]", "two.sum().backward()"),
    "gradients of other weights": ("one.backward(torch.full((5,), 0.1))", "two.backward(torch.full((5,), 0.7))"),
}


@pytest.mark.parametrize("passes", APART.values(), ids=APART)
def test_passes_that_differ_are_not_to_be_one(passes: tuple[str, str], programs: Programs) -> None:
    made = "h = net(torch.randn(5, 3))\none, two = h.pow(2).sum(1), h.abs().sum(1)\n"
    both = ("one.sum().backward()", "two.sum().backward()")
    titles = [
        [each.title for each in _found(programs, _NET + made + "\n".join(pair) + "\n").fixes] for pair in (passes, both)
    ]
    assert [any("call backward once" in title for title in each) for each in titles] == [False, True]


@pytest.mark.parametrize("name", SAME)
def test_the_first_help_gives_the_gradients_that_were_meant(name: str, programs: Programs) -> None:
    program, changes = SAME[name]
    repaired = program
    for before, after in changes:
        assert before in repaired
        repaired = repaired.replace(before, after)
    found, right = _found(programs, program), programs.printed(repaired)
    assert found.fixes[0].edits
    for each in found.fixes:
        if each.edits and not _SAYS_SO.search(each.title):
            assert programs.outputs(edited(program, each.edits)) == (right, "")
