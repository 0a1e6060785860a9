"""The first help for a mistake of a training loop is an edit that makes the program as a person would repair it."""

from __future__ import annotations

import textwrap

import pytest
from support.silent import Run, run  # noqa: F401

from tensorlens.diagnostics import diagnose
from tensorlens.records.edits import edited
from tensorlens.records.report import Diagnostic

NET = "import torch\nfrom torch import nn\nnet = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
LOOP = """\
losses, log, total = [], {"loss": []}, torch.zeros(())
for i in range(6):
    loss = net(torch.ones(1, 2)).square().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
GAN = """\
import torch
from torch import nn
G, D = nn.Linear(2, 3), nn.Linear(3, 1)
og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())

def critic_step(real, fake):
    loss = D(fake.detach()).mean() - D(real).mean()
    loss.backward()
    od.step()

for _ in range(3):
    og.zero_grad()
    fake = G(torch.randn(4, 2))
    (-D(fake).mean()).backward()
    og.step()
    critic_step(torch.randn(4, 3), fake)
"""
MODULE = """\
import torch
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.rest = ...

    def forward(self, x):
        x = self.first(x)
        for layer in self.rest:
            x = layer(x)
        return x

m = M()
opt = torch.optim.SGD(m.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    m(torch.ones(1, 2)).sum().backward()
    opt.step()
"""
FREEZE = """\
import torch
from torch import nn
trunk, head = nn.Linear(2, 2), nn.Linear(2, 1)
opt = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.1, momentum=0.9)

def train():
    head.zero_grad()
    head(trunk(torch.ones(1, 2))).sum().backward()
    opt.step()

train()
trunk.requires_grad_(False)
train()
"""
WRITE = """\
import torch
t = torch.ones(3)
w = torch.ones(3, requires_grad=True)
h = w * 2
print(h.sum() > 0)
...
(h * 3).sum().backward()
"""
TOTAL = "running-total-keeps-graph-alive"
ADDS = "gradient-accumulates-without-zero-grad"
REPLACED = "optimizer-holds-replaced-parameter"
TRAIN = "for i in range(3):\n    opt.zero_grad()\n    net(torch.ones(1, 2)).square().sum().backward()\n    opt.step()\n"

# What is tested: (the code, the program, a piece of it that the edits replace, what they put in its place).
EDITS = {
    "a write without a record": (
        "no-grad-write-not-in-gradient",
        WRITE.replace("...", "with torch.no_grad():\n    h.mul_(10)"),
        "with torch.no_grad():\n    h.mul_(10)\n",
        "h = h.mul(10)\n",
    ),
    "a write through .data": (
        "no-grad-write-not-in-gradient",
        WRITE.replace("...", "h.data *= t + 1"),
        "h.data *= t + 1\n",
        "h = h * (t + 1)\n",
    ),
    "layers of a comprehension, before any optimizer": (
        "optimizer-empty-parameter-list",
        MODULE.replace("        self.first = nn.Linear(2, 2)\n", "")
        .replace("        x = self.first(x)\n", "")
        .replace("...", "[nn.Linear(2, 2) for _ in range(2)]"),
        "[nn.Linear(2, 2) for _ in range(2)]",
        "nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])",
    ),
    "parameters that were counted": (
        "optimizer-empty-parameter-list",
        ("import torch\nnet = torch.nn.Linear(2, 1)\nfound = net.parameters()\nprint(len(list(found)))\n"
        "opt = torch.optim.SGD(found, lr=0.1)\n"),
        "found = net.parameters()",
        "found = list(net.parameters())",
    ),
    "a flag that only tensors have": (
        "requires-grad-set-on-module",
        FREEZE.replace("trunk.requires_grad_(False)", "trunk.requires_grad = False").replace("train()\ntrunk", "trunk"),
        "trunk.requires_grad = False\n",
        "trunk.requires_grad_(False)\n",
    ),
    "the best weights": (
        "state-dict-aliases-parameters",
        NET + "best = net.state_dict()\n" + TRAIN + "net.load_state_dict(best)\n",
        "net.state_dict()\n",
        "{name: value.clone() for name, value in net.state_dict().items()}\n",
    ),
    "the generator's pass comes before": (ADDS, GAN, "    loss.backward()", "    od.zero_grad()\n    loss.backward()"),
    "a closure": (
        ADDS,
        NET.replace("SGD", "LBFGS")
        + "def closure():\n    loss = net(torch.ones(1, 2)).square().sum()\n    loss.backward()\n    return loss\n"
        "for _ in range(2):\n    opt.step(closure)\n",
        "    loss.backward()",
        "    opt.zero_grad()\n    loss.backward()",
    ),
    "the optimizer has no name where the pass is": (
        ADDS,
        ("import torch\ndef back(net):\n    net(torch.ones(1, 2)).square().sum().backward()\n"
        "def step(net, opt):\n    back(net)\n    opt.step()\n"
        "net = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(3):\n    step(net, opt)\n"),
        "    opt.step()",
        "    opt.step()\n    opt.zero_grad()",
    ),
    "parts of a batch": (
        ADDS,
        NET + "for i in range(8):\n    (net(torch.ones(1, 2)).square().sum() / 4).backward()\n"
        "    if i % 4 == 3:\n        opt.step()\n",
        "        opt.step()",
        "        opt.step()\n        opt.zero_grad()",
    ),
    "two updates by hand on one line": (
        ADDS,
        ("import torch\nw = torch.ones(2, requires_grad=True)\nb = torch.ones(2, requires_grad=True)\n"
        "for _ in range(3):\n    (w * w * b).sum().backward()\n    with torch.no_grad():\n"
        "        w.sub_(0.1 * w.grad); b -= 0.1 * b.grad\n"),
        "w.sub_(0.1 * w.grad); b -= 0.1 * b.grad",
        "w.sub_(0.1 * w.grad); w.grad = None; b -= 0.1 * b.grad; b.grad = None",
    ),
    "a new head, and a schedule": (
        REPLACED,
        NET + "lr = torch.optim.lr_scheduler.StepLR(opt, 5)\nprint(1)\nnet.weight = nn.Parameter(torch.ones(1, 2))\n"
        "net.bias = nn.Parameter(torch.ones(1))\n" + TRAIN,
        ("opt = torch.optim.SGD(net.parameters(), lr=0.1)\nlr = torch.optim.lr_scheduler.StepLR(opt, 5)\nprint(1)\n"
        "net.weight = nn.Parameter(torch.ones(1, 2))\nnet.bias = nn.Parameter(torch.ones(1))\n"),
        ("print(1)\nnet.weight = nn.Parameter(torch.ones(1, 2))\nnet.bias = nn.Parameter(torch.ones(1))\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nlr = torch.optim.lr_scheduler.StepLR(opt, 5)\n"),
    ),
    "a parameter replaced after training began": (
        REPLACED,
        NET + TRAIN + "def f(layer):\n    layer.weight = nn.Parameter(layer.weight.detach() * 0.5)\nf(net)\n" + TRAIN,
        "    layer.weight = nn.Parameter(layer.weight.detach() * 0.5)\n",
        "    with torch.no_grad():\n        layer.weight.copy_(layer.weight.detach() * 0.5)\n",
    ),
    "cleared before the step": (
        "zero-grad-after-backward",
        NET + "for i in range(3):\n    net(torch.ones(1, 2)).sum().backward()\n    for p in net.parameters():\n"
        "        p.grad.zero_()\n    opt.step()\n",
        "    for p in net.parameters():\n        p.grad.zero_()\n    opt.step()\n",
        "    opt.step()\n    for p in net.parameters():\n        p.grad.zero_()\n",
    ),
    "a step before backward": (
        "zero-grad-after-backward",
        NET + "for i in range(3):\n    opt.zero_grad()\n    loss = net(torch.ones(1, 2)).sum()\n    opt.step()\n"
        "    loss.backward()\n",
        "    opt.step()\n    loss.backward()\n",
        "    loss.backward()\n    opt.step()\n",
    ),
    "cleared in each part of a batch": (
        "zero-grad-after-backward",
        NET + "for i in range(8):\n    opt.zero_grad()\n    (net(torch.ones(1, 2)).square().sum() / 4).backward()\n"
        "    if i % 4 == 3:\n        opt.step()\n",
        ("    opt.zero_grad()\n    (net(torch.ones(1, 2)).square().sum() / 4).backward()\n"
        "    if i % 4 == 3:\n        opt.step()\n"),
        ("    (net(torch.ones(1, 2)).square().sum() / 4).backward()\n"
        "    if i % 4 == 3:\n        opt.step()\n        opt.zero_grad()\n"),
    ),
    "a step that is only named": (
        "optimizer-step-not-called", NET + TRAIN.replace("opt.step()", "opt.step"), "    opt.step\n", "    opt.step()\n"
    ),
    "a step that is missing, and gradients that are clipped": (
        "optimizer-step-not-called",
        NET + TRAIN.replace("opt.step()", "nn.utils.clip_grad_norm_(net.parameters(), 0.1)"),
        "net.parameters(), 0.1)\n",
        "net.parameters(), 0.1)\n    opt.step()\n",
    ),
    "a backward that is only named": (
        "backward-not-called",
        NET + TRAIN.replace(".sum().backward()", ".sum().backward"),
        ".sum().backward\n",
        ".sum().backward()\n",
    ),
    "a total": (TOTAL, NET + LOOP + "    total += loss\nprint(total.item())\n", "+= loss", "+= loss.detach()"),
    "a total that is assigned": (
        TOTAL, NET + LOOP + "    total = total + 0.5 * loss\nprint(total)\n", "* loss", "* loss.detach()"
    ),
    "a list": (
        TOTAL, NET + LOOP + "    losses.append((i, loss))\nprint(len(losses))\n", "(i, loss)", "(i, loss.detach())"
    ),
    "a list in a dictionary": (
        TOTAL, NET + LOOP + "    log['loss'].append(loss)\nprint(len(log))\n", "append(loss)", "append(loss.detach())"
    ),
    "layers in a list": (
        "parameter-not-registered",
        MODULE.replace("...", "[nn.Linear(2, 2), nn.Linear(2, 1)]"),
        "[nn.Linear(2, 2), nn.Linear(2, 1)]",
        "nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 1)])",
    ),
    "layers that a comprehension puts into a dictionary": (
        "parameter-not-registered",
        MODULE.replace("...", "{n: nn.Linear(2, 2) for n in 'ab'}").replace("in self.rest:", "in self.rest.values():"),
        "{n: nn.Linear(2, 2) for n in 'ab'}",
        "nn.ModuleDict({n: nn.Linear(2, 2) for n in 'ab'})",
    ),
    "a rebound name": (
        "update-rebinds-loop-variable",
        NET + "for i in range(3):\n    net.zero_grad()\n    net(torch.ones(1, 2)).square().sum().backward()\n"
        "    for p in net.parameters():\n        p = p - 0.1 * p.grad\n",
        "        p = p - 0.1 * p.grad\n",
        "        with torch.no_grad():\n            p.copy_(p - 0.1 * p.grad)\n",
    ),
    "a frozen module": (
        "frozen-parameter-still-updated",
        FREEZE,
        "trunk.requires_grad_(False)\n",
        "trunk.requires_grad_(False)\ntrunk.zero_grad()\n",
    ),
    "frozen parameters on one line": (
        "frozen-parameter-still-updated",
        FREEZE.replace("trunk.requires_grad_(False)", "for p in trunk.parameters(): p.requires_grad = False"),
        "p.requires_grad = False\n",
        "p.requires_grad = False; p.grad = None\n",
    ),
}  # fmt: skip


def first_warning(text: str, run: Run) -> Diagnostic:  # noqa: F811
    _, trace = run(text)
    return next(each for each in diagnose(trace) if each.severity != "note")


@pytest.mark.parametrize("name", EDITS)
def test_the_first_help_repairs_the_program(name: str, run: Run) -> None:  # noqa: F811
    code, text, wrong, right = EDITS[name]
    assert text.count(wrong) == 1
    found = first_warning(text, run)
    assert found.code == code
    repaired = edited(text, found.fixes[0].edits)
    assert repaired.strip("\n") == text.replace(wrong, right).strip("\n")
    ran, trace = run(repaired)
    assert ran.returncode == 0, ran.stderr
    assert [each.code for each in diagnose(trace) if each.severity != "note"] == []


COPIES = """\
import copy
import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(3, 2)
for _ in range(2):
    total = 0
    for task in range(2):
        own = copy.deepcopy(net)
        for p in own.parameters():
            p.data += 0.1 * (task + 1)
        total = total + own(x).square().mean()
    opt.zero_grad()
    total.backward()
    opt.step()
print([p.sum().item() for p in net.parameters()])
"""
FUNCTIONAL = """\
import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(3, 2)
for _ in range(2):
    total = 0
    for task in range(2):
        own = {name: p + 0.1 * (task + 1) for name, p in net.named_parameters()}
        total = total + torch.func.functional_call(net, own, (x,)).square().mean()
    opt.zero_grad()
    total.backward()
    opt.step()
print([p.sum().item() for p in net.parameters()])
"""


def test_a_copy_passes_its_gradients_on(run: Run) -> None:  # noqa: F811
    found = first_warning(COPIES, run)
    assert found.code == REPLACED
    ran, trace = run(edited(COPIES, found.fixes[0].edits))
    assert ran.stdout == run(FUNCTIONAL)[0].stdout
    assert not diagnose(trace)


GROWING = """import torch
from torch import nn

def make(module):
    return torch.optim.Adam(module.parameters(), lr=0.1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 1)

    def widen(self):
        self.head = nn.Linear(2, 3)

    def forward(self, x):
        return self.head(self.body(x))

class Run:
    def __init__(self):
        self.net, self.count = Net(), 0
        self.opt = make(self.net)

    def after(self, i):
        if i == 2:
            self.net.widen()
            self.count += 1

    def fit(self):
        for i in range(5):
            self.opt.zero_grad()
            self.net(torch.ones(1, 2)).square().sum().backward()
            self.opt.step()
            self.after(i)

run = Run()
run.fit()
"""
RESTORED = """import copy, torch
from torch import nn
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
best = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.Adam(net.parameters(), lr=0.1)
for i in range(5):
    if i == 2:
        net = copy.deepcopy(best).requires_grad_(True)
    opt.zero_grad()
    net(torch.ones(1, 2)).square().sum().backward()
    opt.step()
"""
REMADE = {  # the program, the piece of it that the edit changes, and the new piece
    "a method that the trainer calls": (
        GROWING,
        "            self.net.widen()\n",
        "            self.net.widen()\n            self.opt = make(self.net)\n",
    ),
    "a layer of a sequence": (
        NET.replace("nn.Linear(2, 1)", "nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))")
        + TRAIN.replace("opt.zero", "if i == 1:\n        net[1] = nn.Linear(2, 3)\n    opt.zero"),
        "        net[1] = nn.Linear(2, 3)\n",
        "        net[1] = nn.Linear(2, 3)\n        opt = torch.optim.SGD(net.parameters(), lr=0.1)\n",
    ),
    "a copy of the best weights": (
        RESTORED,
        "net = copy.deepcopy(best).requires_grad_(True)",
        "net.load_state_dict(best.state_dict())",
    ),
}


@pytest.mark.parametrize(("text", "old", "new"), REMADE.values(), ids=REMADE)
def test_the_optimizer_trains_the_new_parameters(text: str, old: str, new: str, run: Run) -> None:  # noqa: F811
    found = first_warning(text, run)
    assert found.code == REPLACED
    repaired = edited(text, found.fixes[0].edits)
    assert repaired == text.replace(old, new)
    assert not diagnose(run(repaired)[1])


KEPT = {  # programs that leave no safe edit: the help stays a sentence
    "a schedule holds the optimizer": GROWING.replace(
        "        self.opt = make(self.net)",
        "        self.opt = make(self.net)\n        self.plan = torch.optim.lr_scheduler.StepLR(self.opt, 5)",
    ),
    "a name that only the first function has": GROWING.replace(
        "__init__(self):\n        self.net", "__init__(self, lr=0.1):\n        self.net"
    ).replace("make(self.net)", "torch.optim.SGD(self.net.parameters(), lr=lr)"),
    "the optimizer's class draws random numbers": textwrap.dedent("""
        import torch
        class Trainer:
            def __init__(self, net):
                self.extra = torch.nn.Linear(2, 2)
                self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        trainer = Trainer(net)
        net[1] = torch.nn.Linear(2, 3)
        for i in range(4):
            trainer.opt.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            trainer.opt.step()
        """),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_an_edit_that_may_change_more_is_not_made(text: str, run: Run) -> None:  # noqa: F811
    found = first_warning(text, run)
    assert found.code == REPLACED
    assert not any(each.edits for each in found.fixes)


def test_a_tensor_that_another_name_has_is_not_rebound(run: Run) -> None:  # noqa: F811
    found = first_warning(WRITE.replace("...", "k = h\nwith torch.no_grad():\n    k.mul_(10)"), run)
    assert found.code == "no-grad-write-not-in-gradient"
    assert not any(each.edits for each in found.fixes)


LATE = """\
import torch
trunk, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
first, second = torch.optim.Adam(trunk.parameters()), torch.optim.Adam(head.parameters())
for i in range(6):
    head(trunk(torch.ones(4, 2))).square().mean().backward()
    second.step()
    if i > 20:
        first.step()
    first.zero_grad()
    second.zero_grad()
"""


def test_a_step_below_a_condition_is_not_written_a_second_time(run: Run) -> None:  # noqa: F811
    found = first_warning(LATE, run)
    assert found.code == "optimizer-step-not-called"
    (advice,) = found.fixes
    assert advice.place is not None
    assert not advice.edits
    assert LATE.splitlines()[advice.place.line - 1].strip() == "first.step()"


def test_an_optimizer_without_a_name_gets_no_edit(run: Run) -> None:  # noqa: F811
    text = LATE.replace(
        "first, second = torch.optim.Adam(trunk.parameters()), ",
        "steps = [torch.optim.Adam(trunk.parameters())]\nsecond = ",
    )
    found = first_warning(text.replace("    if i > 20:\n        first.step()\n    first.zero_grad()\n", ""), run)
    assert found.code == "optimizer-step-not-called"
    assert not any(each.edits for each in found.fixes)
