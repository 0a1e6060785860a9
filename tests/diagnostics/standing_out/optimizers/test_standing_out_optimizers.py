"""Checks the sentences about idle optimizers, early steps, frozen groups, learning rates and shared parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, report_of, sentences

MODEL = "model = nn.Linear(4, 1)\nf = lambda x: model(x).square().mean()\n"
TWO = "body, head = nn.Linear(4, 4), nn.Linear(4, 1)\nf = lambda x: head(body(x)).square().mean()\n"
SGD = "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
LOOP = """
for step in range(3):
    opt.zero_grad()
    loss = f(torch.randn(8, 4))
    loss.backward()
    opt.step()
"""
SHORT = LOOP.replace("range(3)", "range(2)")
SCHEDULED = """
for step in range({}):
    opt.zero_grad()
    f(torch.randn(8, 4)).backward()
    opt.step()
    schedule.step()
"""

IDLE = {
    "of another layer": (
        TWO
        + "opt = torch.optim.SGD(head.parameters(), lr=0.1)\nlater = torch.optim.Adam(body.parameters())  #!\n"
        + SHORT,
        "`Adam` makes no step, and holds 2 parameters",
    ),
    "of one parameter": (
        TWO
        + "opt = torch.optim.SGD(head.parameters(), lr=0.1)\nrest = torch.optim.SGD([body.weight], lr=0.1)  #!\n"
        + SHORT,
        "`SGD` makes no step, and holds 1 parameter",
    ),
    "the only one": (
        MODEL + "opt = torch.optim.AdamW(model.parameters())  #!\nf(torch.randn(8, 4)).backward()\n",
        "`AdamW` makes no step, and holds 2 parameters",
    ),
    "in a class": (
        TWO
        + "class Trainer:\n    def __init__(self):\n        self.heads = torch.optim.SGD(head.parameters(), lr=0.1)\n"
        "        self.bodies = torch.optim.RMSprop(body.parameters())  #!\nopt = Trainer().heads\n" + SHORT,
        "`RMSprop` makes no step, and holds 2 parameters",
    ),
}
EARLY = {
    "step first": (
        MODEL
        + SGD
        + "for step in range(3):\n    opt.step()  #!\n    opt.zero_grad()\n    f(torch.randn(8, 4)).backward()\n",
        "the first step of `SGD` runs before any backward pass, and finds no gradient",
    ),
    "in a function": (
        MODEL + SGD + "def update():\n    opt.step()  #!\n    opt.zero_grad()\n"
        "for step in range(3):\n    loss = f(torch.randn(8, 4))\n    update()\n    loss.backward()\n",
        "the first step of `SGD` runs before any backward pass",
    ),
    "with two groups": (
        TWO + "opt = torch.optim.SGD([{'params': head.parameters()}, {'params': body.parameters()}], lr=0.1)\n"
        "for step in range(3):\n    opt.step()  #!\n    f(torch.randn(8, 4)).backward()\n"
        "    opt.zero_grad(set_to_none=False)\n",
        "the first step of `SGD` runs before any backward pass",
    ),
}
FROZEN = {
    "one group": (
        TWO + "body.requires_grad_(False)  #!\nopt = torch.optim.SGD([{'params': body.parameters(), 'lr': 0.01},"
        " {'params': head.parameters()}], lr=0.1)\n" + LOOP,
        "each of the 2 parameters of a group of `SGD` is frozen, and never has a gradient",
    ),
    "one parameter": (
        TWO + "body.weight.requires_grad = False  #!\nopt = torch.optim.SGD([{'params': [body.weight], 'lr': 0.01},"
        " {'params': head.parameters()}], lr=0.1)\n" + LOOP,
        "the only parameter of a group of `SGD` is frozen, and never has a gradient",
    ),
    "made without a gradient": (
        TWO + "table = nn.Embedding.from_pretrained(torch.randn(4, 4))  #!\nopt = torch.optim.SGD("
        "[{'params': table.parameters(), 'lr': 0.01}, {'params': head.parameters()}], lr=0.1)\n" + LOOP,
        "the only parameter of a group of `SGD` is frozen, and never has a gradient",
    ),
    "a whole optimizer": (
        TWO + "for p in body.parameters():\n    p.requires_grad = False  #!\n"
        "opt = torch.optim.SGD(head.parameters(), lr=0.1)\nother = torch.optim.Adam(body.parameters())\n"
        + LOOP
        + "    other.step()\n",
        "each of the 2 parameters of `Adam` is frozen, and never has a gradient",
    ),
    "after the optimizer was made": (
        TWO + "opt = torch.optim.SGD([{'params': body.parameters()}, {'params': head.parameters()}], lr=0.1)\n"
        "body.requires_grad_(False)  #!\n" + LOOP,
        "each of the 2 parameters of a group of `SGD` is frozen",
    ),
}
RATES = {
    "zero": (
        MODEL + "opt = torch.optim.SGD(model.parameters(), lr=0)  #!\n" + LOOP,
        "the learning rate of `SGD` is 0 at each of its 3 steps",
    ),
    "zero for a group": (
        TWO + "opt = torch.optim.Adam([{'params': body.parameters(), 'lr': 0.1 * (1 // 3)},"
        " {'params': head.parameters()}])  #!\n" + LOOP,
        "the learning rate of the group of `body.weight` and `body.bias` is 0 at each of its 3 steps",
    ),
    "a schedule of zeros": (
        MODEL + "opt = torch.optim.SGD(model.parameters(), lr=0.1)  #!\n"
        "schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: step // 100)\n" + SCHEDULED.format(4),
        "the learning rate of `SGD` is 0 at each of its 4 steps",
    ),
    "a schedule by epochs in each step": (
        MODEL + "opt = torch.optim.SGD(model.parameters(), lr=0.1)  #!\n"
        "schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.1)\n" + SCHEDULED.format(12),
        "the learning rate of `SGD` falls from 0.1 to 1e-12 in 12 steps",
    ),
    "a schedule that ends early": (
        MODEL + "opt = torch.optim.SGD(model.parameters(), lr=0.1)  #!\n"
        "schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: max(0.0, 1 - i / 10))\n" + SCHEDULED.format(30),
        "the learning rate of `SGD` falls from 0.1 to 0 in 30 steps",
    ),
    "many steps": (
        MODEL + "opt = torch.optim.SGD(model.parameters(), lr=0.1)  #!\n"
        "schedule = torch.optim.lr_scheduler.StepLR(opt, 1, 0.5)\n" + SCHEDULED.format(64),
        "the learning rate of `SGD` falls from about 0.0",
    ),
    "a rate that grows": (
        MODEL + "opt = torch.optim.SGD(model.parameters(), lr=1e-8)  #!\n"
        "schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 10.0)\n" + SCHEDULED.format(9),
        "the learning rate of `SGD` grows from 1e-08 to 1 in 9 steps",
    ),
    "a rate that rises first": (
        MODEL + "opt = torch.optim.SGD(model.parameters(), lr=0.1)  #!\n"
        "schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: min(1, (i + 1) / 4) * 0.2 ** max(0, i - 4))\n"
        + SCHEDULED.format(24),
        "the learning rate of `SGD` rises to 0.1 and falls to 5.24288e-15 in 24 steps",
    ),
    "too small for half precision": (
        "w = nn.Parameter(torch.ones(4, dtype=torch.bfloat16))\nf = lambda x: (x.bfloat16() @ w).square().mean()\n"
        "opt = torch.optim.SGD([w], lr=1e-4)  #!\n" + LOOP,
        "`w` (bfloat16) is the same after 3 steps of `SGD` as before, with a learning rate of at most 0.0001",
    ),
    "too small after a cast": (
        "net = nn.Linear(4, 1)\nnn.init.ones_(net.weight)\nnet.half()\nf = lambda x: net(x.half()).square().mean()\n"
        "opt = torch.optim.SGD([net.weight], lr=1e-6)  #!\n" + LOOP,
        "`net.weight` (half precision) is the same after 3 steps of `SGD` as before",
    ),
    "too small for single precision": (
        MODEL + "opt = torch.optim.SGD(model.parameters(), lr=1e-12)  #!\n" + LOOP,
        "`model.weight` and `model.bias` (float32) are the same after 3 steps of `SGD` as before",
    ),
    "too small for large weights": (
        "w = nn.Parameter(torch.full((4,), 4e5))\nf = lambda x: (x @ (w * 1e-6)).square().mean() + 10 * w.mean()\n"
        "opt = torch.optim.Adam([w], lr=1e-4)  #!\n" + LOOP,
        "`w` (float32) is the same after 3 steps of `Adam` as before",
    ),
}
TWICE = {
    "two kinds": (
        TWO + "opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)\n"
        "other = torch.optim.Adam(head.parameters())  #!\n" + LOOP + "    other.step()\n",
        "`head.weight` and `head.bias` are in `SGD` and `Adam`, and both step",
    ),
    "one kind": (
        MODEL + SGD + "other = torch.optim.SGD(model.parameters(), lr=0.1)  #!\n" + LOOP + "    other.step()\n",
        "`model.weight` and `model.bias` are in two `SGD` optimizers, and both step",
    ),
    "one parameter": (
        MODEL + SGD + "other = torch.optim.Adam([model.bias])  #!\n" + LOOP + "    other.step()\n",
        "`model.bias` is in `SGD` and `Adam`, and both step",
    ),
    "several groups": (
        TWO + "opt = torch.optim.SGD([{'params': body.parameters()}, {'params': head.parameters()}], lr=0.1)\n"
        "other = torch.optim.Adam([*head.parameters(), *body.parameters()])  #!\n" + LOOP + "    other.step()\n",
        "`body.weight`, `body.bias`, `head.weight` and 1 more are in `SGD` and `Adam`, and both step",
    ),
}
WRONG = {f"{kind}: {name}": case for kind, cases in (("idle", IDLE), ("early", EARLY), ("frozen", FROZEN),
         ("rate", RATES), ("twice", TWICE)) for name, case in cases.items()}  # fmt: skip

WRAPPER = """
class Wrapper(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self.inner = torch.optim.SGD(self.param_groups, lr=lr)
        self.param_groups = self.inner.param_groups
    def step(self, closure=None):
        self.inner.step()
opt = Wrapper(model.parameters(), 0.1)
"""
RIGHT = {
    "a step that pleases a scheduler": MODEL + SGD + "opt.step()\n" + LOOP,
    "an optimizer to plot a schedule": MODEL + "plot = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)\n"
    + SGD + LOOP,
    "a part that has not begun": MODEL + "late = nn.Linear(4, 1)\nother = torch.optim.Adam(late.parameters())\n"
    + SGD + LOOP
    + "    if step > 50:\n        other.step()\n",
    "a group for each parameter": TWO + "body.bias.requires_grad_(False)\nopt = torch.optim.AdamW([{'params': [p]}"
    " for p in [*body.parameters(), *head.parameters()]])\n" + LOOP,
    "an unfreezing that has not begun": TWO + "body.requires_grad_(False)\n"
    "opt = torch.optim.Adam([{'params': each.parameters()} for each in (body, head)])\n" + LOOP
    + "    if step > 50:\n        body.requires_grad_(True)\n",
    "usual": MODEL + SGD + LOOP,
    "two networks in turn": TWO + "opt = torch.optim.SGD(body.parameters(), lr=0.1)\n"
    "other = torch.optim.Adam(head.parameters())\n" + LOOP + "    other.step()\n",
    "one of two that an option leaves out": "def run(dual):\n"
    "    net, other = nn.Linear(4, 1), nn.Parameter(torch.ones(1))\n"
    "    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n    second = torch.optim.SGD([other], lr=0.1)\n"
    "    for _ in range(3):\n        opt.zero_grad()\n        second.zero_grad()\n"
    "        loss = net(torch.randn(8, 4)).square().mean()\n"
    "        (loss + other.square().sum() if dual else loss).backward()\n        opt.step()\n"
    "        if dual:\n            second.step()\nrun(False)\nrun(True)\n",
    "a wrapper": MODEL + WRAPPER + LOOP,
    "a wrapper with groups of its own": MODEL + "class Outer(torch.optim.Optimizer):\n"
    "    def __init__(self, params, inner):\n        super().__init__(params, {})\n        self.inner = inner\n"
    "    def step(self):\n        self.inner.step()\n"
    "opt = Outer(model.parameters(), torch.optim.SGD(model.parameters(), lr=0.1))\n" + LOOP,
    "an optimizer for each of two losses": TWO + "both = [*body.parameters(), *head.parameters()]\n"
    "opt = torch.optim.SGD(both, lr=0.1)\nother = torch.optim.Adam(body.parameters())\n" + LOOP
    + "    other.zero_grad()\n    body(torch.randn(8, 4)).abs().mean().backward()\n    other.step()\n",
    "an optimizer for each of two losses, stepped by one function": TWO + "own = nn.Linear(4, 1)\n"
    "first = torch.optim.Adam([*body.parameters(), *head.parameters()])\n"
    "second = torch.optim.Adam([*body.parameters(), *own.parameters()])\n"
    "def update(opt, loss):\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    "for _ in range(3):\n    update(first, head(body(torch.randn(8, 4))).square().mean())\n"
    "    update(second, own(body(torch.randn(8, 4))).abs().mean())\n",
    "an outer step by a difference of weights": MODEL + "inner = torch.optim.SGD(model.parameters(), lr=0.05)\n"
    "outer = torch.optim.Adam(model.parameters(), lr=0.01)\nfor _ in range(3):\n"
    "    start = {name: p.detach().clone() for name, p in model.named_parameters()}\n    for _ in range(2):\n"
    "        inner.zero_grad()\n        f(torch.randn(8, 4)).backward()\n        inner.step()\n"
    "    for name, p in model.named_parameters():\n        p.grad = start[name] - p.data\n"
    "    model.load_state_dict(start)\n    outer.step()\n",
    "a wrapper whose own step never runs": MODEL + WRAPPER.replace("opt = ", "outer = ") + "opt = outer.inner\n" + LOOP,
    "one optimizer after the other": MODEL + SGD + LOOP + "opt = torch.optim.Adam(model.parameters())\n" + LOOP,
    "made again before the first step": MODEL + SGD + "opt = torch.optim.Adam(model.parameters())\n" + LOOP,
    "no training": MODEL + SGD + "with torch.no_grad():\n    f(torch.randn(8, 4))\n",
    "gradient accumulation": MODEL + SGD + "for i in range(6):\n    (f(torch.randn(8, 4)) / 2).backward()\n"
    "    if i % 2:\n        opt.step()\n        opt.zero_grad()\n",
    "a closure": MODEL + "opt = torch.optim.LBFGS(model.parameters())\nx = torch.randn(8, 4)\n"
    "def closure():\n    opt.zero_grad()\n    loss = f(x)\n    loss.backward()\n    return loss\n"
    "for i in range(2):\n    opt.step(closure)\n",
    "no gradient at the first step, after another pass": "a, b = nn.Linear(4, 1), nn.Linear(4, 1)\n"
    "opt = torch.optim.SGD(a.parameters(), lr=0.1)\nother = torch.optim.SGD(b.parameters(), lr=0.1)\n"
    "for i in range(4):\n    (b if i % 2 else a)(torch.randn(8, 4)).square().mean().backward()\n"
    "    opt.step()\n    other.step()\n    opt.zero_grad()\n    other.zero_grad()\n",
    "a group that nothing uses": TWO + "spare = nn.Linear(4, 4)\n"
    "opt = torch.optim.SGD([{'params': spare.parameters()}, {'params': [*body.parameters(), *head.parameters()]}])\n"
    + LOOP,
    "frozen by an option": "learned = False\n" + MODEL
    + "gate = nn.Parameter(torch.ones(1), requires_grad=learned)\ngates = torch.optim.Adam([gate])\n" + SGD
    + "f = lambda x: (gate * model(x)).square().mean()\n" + LOOP + "    gates.step()\n",
    "frozen layers in the only group": TWO + "body.requires_grad_(False)\n"
    "opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1, weight_decay=0.1)\n" + LOOP,
    "unfrozen later": TWO + "body.requires_grad_(False)\n"
    "opt = torch.optim.SGD([{'params': body.parameters()}, {'params': head.parameters()}], lr=0.1)\n"
    "for i in range(4):\n    body.requires_grad_(i > 1)\n    opt.zero_grad()\n    f(torch.randn(8, 4)).backward()\n"
    "    opt.step()\n",
    "a cosine to zero": MODEL + SGD + "schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 40)\n"
    + SCHEDULED.format(40),
    "one cycle": MODEL + SGD + "schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=50)\n"
    + SCHEDULED.format(50),
    "steps far down": MODEL + SGD
    + "schedule = torch.optim.lr_scheduler.MultiStepLR(opt, [5, 9], 0.1)\n" + SCHEDULED.format(30),
    "a second phase with a low rate": MODEL + SGD + SCHEDULED.format(30).replace(
        "    schedule.step()", "    opt.param_groups[0]['lr'] = 0.02 * (step + 1) if step < 9 else 1e-5"),
    "a floor at the end": MODEL + SGD
    + "schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: max(0.02, 1 - i / 20))\n" + SCHEDULED.format(30),
    "a floor that is no low one": MODEL + SGD
    + "schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: max(0.2, 1 - i / 10))\n" + SCHEDULED.format(30),
    "a long warm-up": MODEL + SGD
    + "schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: min(1, (i + 1) / 100))\n" + SCHEDULED.format(10),
    "a lower rate for one of two groups": MODEL
    + "groups = [{'params': [p]} for p in model.parameters()]\nopt = torch.optim.SGD(groups, lr=0.1)\n"
    + "falls = [lambda i: 0.1 * 0.9**i] + [lambda i: 0.9**i] * (len(groups) - 1)\n"
    + "schedule = torch.optim.lr_scheduler.LambdaLR(opt, falls)\n" + SCHEDULED.format(8),
    "a group that is left as it is": TWO + "lowest = 0.0\nopt = torch.optim.Adam([{'params': body.parameters(), "
    "'lr': lowest}, {'params': head.parameters()}])\n" + LOOP,
    "the first of several groups at zero": TWO + "opt = torch.optim.Adam([{'params': body.parameters(), 'lr': 0.0},"
    " {'params': head.parameters()}])\n" + LOOP,
    "a warm-up from zero": MODEL + SGD + "schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: i / 50)\n"
    + SCHEDULED.format(50),
    "steps down": MODEL + SGD + "schedule = torch.optim.lr_scheduler.StepLR(opt, 10, 0.1)\n" + SCHEDULED.format(40),
    "no learning rate": MODEL + "class Sign(torch.optim.Optimizer):\n    def __init__(self, params):\n"
    "        super().__init__(params, {})\n    @torch.no_grad()\n    def step(self):\n"
    "        for p in self.param_groups[0]['params']:\n            p.sub_(0.01 * p.grad.sign())\n"
    "opt = Sign(model.parameters())\n" + LOOP,
    "a rate in a tensor": MODEL + "opt = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.1))\n" + LOOP,
    "a bias before a normalisation": "net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.01)\nf = lambda x: net(x).square().mean()\n" + LOOP,
    "weights put back": MODEL + SGD + "import copy\nbest = copy.deepcopy(model.state_dict())\n" + LOOP
    + "model.load_state_dict(best)\n",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_an_unusual_optimizer_is_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    found = [each for each in sentences(tmp_path, body) if text in each.text]
    assert len(found) == 1
    assert found[0].labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_a_usual_optimizer_is_not_named(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name])] == []


def test_an_optimizer_that_a_finding_names_is_not_named_again(tmp_path: Path) -> None:
    report = report_of(tmp_path, MODEL + SGD + LOOP.replace("opt.step()", "pass"))
    assert [each.code for each in report.diagnostics] == ["optimizer-step-not-called"]
    assert report.standing_out == ()


@pytest.mark.parametrize("count", [1, 2])
def test_a_line_that_sets_the_rate_of_another_optimizer_has_no_label(tmp_path: Path, count: int) -> None:
    body = TWO + "KEY = 'lr'\nopt = torch.optim.SGD(body.parameters(), lr=0.1)\n"
    body += "other = torch.optim.SGD(head.parameters(), lr=0.1)\n" if count == 2 else "other = opt\n"
    body += (
        LOOP.replace("range(3)", "range(40)") + "    other.step()\n    other.param_groups[0]['lr'] = 0.1 * 0.5**step\n"
    )
    body += "    opt.param_groups[0][KEY] = 0.1 * 0.5**step\n"
    found = [each for each in sentences(tmp_path, body) if "falls from" in each.text]
    assert len(found) == count
    assert all(("a rate is set here" in [label.text for label in each.labels]) == (count == 1) for each in found)


TURNS = """\
maker, judge, bce = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)), nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
first = torch.optim.Adam([*maker.parameters(), *judge.parameters()])
second = torch.optim.Adam(judge.parameters())  #!
for step in range(3):
    second.zero_grad()
    fake = judge(maker(torch.randn(8, 3)).detach())
    (bce(judge(torch.rand(8, 2)), ones) + bce(fake, zeros)).backward()
    second.step()
    first.zero_grad()
    bce(judge(maker(torch.randn(8, 3))), ones).backward()
    first.step()
"""
HINGE = "(torch.relu(1 - judge(torch.rand(8, 2))) + torch.relu(1 + fake)).mean().backward()"
OPPOSED = {
    "targets": TURNS,
    "a hinge": TURNS.replace("(bce(judge(torch.rand(8, 2)), ones) + bce(fake, zeros)).backward()", HINGE).replace(
        "bce(judge(maker(torch.randn(8, 3))), ones)", "(-judge(maker(torch.randn(8, 3)))).mean()"),
    "means, a list of both, and no gradients": TURNS.replace("fake = judge(maker(torch.randn(8, 3)).detach())", (
        "with torch.no_grad(): made = maker(torch.randn(8, 3))")).replace(
        "(bce(judge(torch.rand(8, 2)), ones) + bce(fake, zeros))",
        "(judge(made).mean() - judge(torch.rand(8, 2)).mean())",
    ).replace("bce(judge(maker(torch.randn(8, 3))), ones)", "(-1 * judge(maker(torch.randn(8, 3)))).sum()"),
    "logarithms": TURNS.replace("bce(fake, zeros)", "-torch.log(1 - fake.sigmoid()).mean()").replace(
        "bce(judge(maker(torch.randn(8, 3))), ones)", "(-judge(maker(torch.randn(8, 3))).sigmoid().log().mean())"),
}  # fmt: skip
NOT_OPPOSED = {
    "a rate of 0 for the other part": TURNS.replace("Adam([*maker.parameters(), *judge.parameters()])", (
        "Adam([{'params': maker.parameters()}, {'params': judge.parameters(), 'lr': 0.0}])")),
    "a rate of its own": TURNS.replace("Adam([*maker.parameters(), *judge.parameters()])", (
        "Adam([{'params': maker.parameters()}, {'params': judge.parameters(), 'lr': 1e-5}])")),
    "an optimizer for each": TURNS.replace(", *judge.parameters()", ""),
    "a head that learns from values without a graph as well": TURNS.replace("bce(fake, zeros)", "bce(fake, ones)"),
    "frozen where the other learns": TURNS.replace("    first.zero", (
        "    judge.requires_grad_(False)\n    first.zero")) + "    judge.requires_grad_(True)\n",
    "cleared where the other learns": TURNS.replace("    first.step", "    judge.zero_grad()\n    first.step"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPPOSED)
def test_an_optimizer_that_undoes_the_steps_of_another_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, OPPOSED[name]) if "losses with opposite signs" in each.text)
    assert found.labels[0].span.line == marked(OPPOSED[name])


@pytest.mark.parametrize("name", NOT_OPPOSED)
def test_optimizers_with_one_aim_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, NOT_OPPOSED[name]) if "both step" in each.text] == []


def test_the_line_that_sets_a_falling_rate_is_marked(tmp_path: Path) -> None:
    body = (
        MODEL
        + SGD
        + SCHEDULED.format(12).replace("schedule.step()", "opt.param_groups[0].update(lr=0.1 ** (step + 2))  #!")
    )
    (found,) = (each for each in sentences(tmp_path, body) if "the learning rate of `SGD` falls" in each.text)
    assert found.labels[1].span.line == marked(body)


RESUMED = """\
x = torch.randn(8, 4)
def run(opt, model):
    for _ in range(3):
        opt.zero_grad()
        model(x).square().mean().backward()
        opt.step()
first, second = nn.Linear(4, 1), nn.Linear(4, 1)
one = torch.optim.Adam(first.parameters(), lr=0.1)
run(one, first)
two = torch.optim.Adam(second.parameters(), lr=0.001)
second.load_state_dict(first.state_dict())
two.load_state_dict(one.state_dict())  #!
run(two, second)
"""
KEPT_RATES = {
    "the same rate": RESUMED.replace("0.001", "0.1"),
    "set afterwards": RESUMED.replace("  #!\n", "\nfor group in two.param_groups:\n    group['lr'] = 0.001\n"),
    "a schedule": RESUMED.replace("run(one", "sched = torch.optim.lr_scheduler.StepLR(one, 1, 0.5)\nrun(one").replace(
        "first)\ntwo", "first)\nsched.step()\ntwo").replace("0.001", "0.1"),
    "a schedule afterwards": RESUMED.replace("  #!\n", "\nsched = torch.optim.lr_scheduler.StepLR(two, 1, 0.5)\n"),
    "a rate that lines halve": RESUMED.replace("0.001", "0.2").replace("  #!", "").replace(
        "run(one, first)\n", "run(one, first)\nfor group in one.param_groups:\n    group['lr'] *= 0.5\n"),
    "made as the optimizer of the run before": RESUMED.replace("0.001", "0.1").replace("run(one, first)", (
        "run(one, first)\nset_all = lambda rate: [g.__setitem__(KEY, rate) for g in one.param_groups]\nset_all(0.05)")
        ).replace("x =", "KEY = 'lr'\nx =").replace("  #!", ""),
    "the random numbers, too": RESUMED.replace("two.load_state_dict(one.state_dict())  #!\nrun(two, second)", (
        "def resume(state, numbers):\n    two.load_state_dict(state)\n    torch.set_rng_state(numbers)\n"
        "resume(one.state_dict(), torch.get_rng_state())\nrun(two, second)")),
    "its own state": RESUMED.replace("load_state_dict(one", "load_state_dict(two").replace("  #!", ""),
    "back to what was kept": RESUMED.replace("  #!\n", "\n").replace("two.load_state_dict(one.state_dict())", (
        "kept = two.state_dict()\nrun(two, second)\ntwo.load_state_dict(kept)")),
}  # fmt: skip


def test_a_learning_rate_that_a_state_dict_replaces_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, RESUMED) if "replaces the learning rate" in each.text)
    assert found.text == (
        "`two.load_state_dict(one.state_dict())` replaces the learning rate of the new `Adam`, 0.001, by the loaded "
        "one: its 3 steps use 0.1"
    )
    assert found.labels[0].span.line == marked(RESUMED)


@pytest.mark.parametrize("name", KEPT_RATES)
def test_a_rate_that_stays_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, KEPT_RATES[name]) if "replaces the learning" in each.text] == []


GROUPS = """\
body, head = nn.Linear(4, 4), nn.Linear(4, 1)
f = lambda x: head(body(x)).square().mean()
opt = torch.optim.AdamW([{"params": body.parameters(), "lr": 1e-5}, {"params": head.parameters(), "lr": 1e-2}])
schedule = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=9)
"""
SCALED = "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\nschedule = torch.optim.lr_scheduler.LambdaLR(opt, {})\n"
RATES = {
    "one rate for two groups": (
        GROUPS + SCHEDULED.format(8),
        "`AdamW` were made with learning rates of 1e-05 and 0.01, and have the same rate at each of its 8 steps"),
    "a factor that is a rate": (
        MODEL + SCALED.format("lambda step: 1e-3") + SCHEDULED.format(4),
        "`SGD` was made with a learning rate of 0.001, and its steps use at most 1e-06"),
    "a function that computes the rate itself, after its top": (
        MODEL + SCALED.replace("1e-3", "0.01").format("lambda n: 0.125 * min((n + 1) ** -0.5, (n + 1) * 10 ** -1.5)")
        + SCHEDULED.format(30),
        "`SGD` was made with a learning rate of 0.01, and its steps use at most 0.000395285"),
    "a schedule of rates": (
        MODEL + SCALED.replace("1e-3", "0.08").format("lambda step: 0.08 * min(step / 3, (8 - step) / 5)")
        + SCHEDULED.format(8),
        "`SGD` was made with a learning rate of 0.08, and its steps use at most 0.0064, its square"),
    "a group of an iterator that another line has used up": (
        MODEL + "slow = filter(lambda p: p.dim() > 1, model.parameters())\nprint(len(list(slow)), end='')\n"
        "opt = torch.optim.SGD([{'params': slow, 'lr': 1e-4}, {'params': model.parameters()}], lr=0.1)\n" + LOOP,
        "a group of `SGD`, made with a learning rate of 0.0001, holds no parameters"),
    "two schedulers of one optimizer": (
        TWO + "one, other = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (body, head))\n"
        "a = torch.optim.lr_scheduler.StepLR(one, 2)\nb = torch.optim.lr_scheduler.StepLR(one, 2)\n"
        "for _ in range(4):\n    f(torch.randn(8, 4)).backward()\n    one.step(); other.step(); a.step(); b.step()\n"
        "    one.zero_grad(); other.zero_grad()\n",
        "two `StepLR` change the learning rate of one `SGD`, and another `SGD` has none"),
}  # fmt: skip
USUAL_RATES = {
    "rates of their own": GROUPS.replace("max_lr=1e-2", "max_lr=[1e-5, 1e-2]") + SCHEDULED.format(8),
    "a schedule of rates themselves": MODEL + SCALED.format("lambda step: 1e-3").replace("lr=1e-3", "lr=1.0")
    + SCHEDULED.format(8),
    "a warm-up that goes on": MODEL + SCALED.format("lambda step: 0.005 * (step + 1)") + SCHEDULED.format(8),
    "a long warm-up": MODEL + SCALED.format("lambda step: min(1.0, (step + 1) / 4000)") + SCHEDULED.format(8),
    "a warm-up": MODEL + SCALED.format("lambda step: min(1, (step + 1) / 4)") + SCHEDULED.format(8),
    "no decay for no biases": "model = nn.Linear(4, 1, bias=False)\nf = lambda x: model(x).square().mean()\n"
    "opt = torch.optim.AdamW([{'params': model.parameters()}, {'params': [], 'weight_decay': 0.0}])\n" + LOOP,
    "a scheduler that does not step": RATES["two schedulers of one optimizer"][0].replace("for _ in range(4)", (
        "c = torch.optim.lr_scheduler.StepLR(other, 2)\nfor _ in range(4)")),
    "schedulers in a row": TWO + "one, other = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (body, head))\n"
    "a = torch.optim.lr_scheduler.StepLR(one, 2)\nb = torch.optim.lr_scheduler.StepLR(other, 2)\n"
    "for _ in range(4):\n    f(torch.randn(8, 4)).backward()\n    one.step(); other.step(); a.step(); b.step()\n"
    "    one.zero_grad(); other.zero_grad()\n",
}  # fmt: skip
ENDING = MODEL + "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nschedule = torch.optim.lr_scheduler.{}\n"
CHOSEN_ENDS = {
    "a linear decay to a floor": ENDING.format("LambdaLR(opt, lambda i: max(1 - i / 10, 0.01))") + SCHEDULED.format(30),
    "a linear decay of PyTorch": ENDING.format("LinearLR(opt, 1.0, 0.01, 10)") + SCHEDULED.format(30),
    "a decay with a floor": ENDING.format("LambdaLR(opt, lambda i: max(0.6 ** i, 0.05))") + SCHEDULED.format(30),
    "plateaus": ENDING.format("LambdaLR(opt, lambda i: 0.1 ** min(i // 4, 2))") + SCHEDULED.format(24),
    "a rate that a line sets": ENDING.format("LambdaLR(opt, lambda i: max(0.02, 1 - i / 10))") + SCHEDULED.format(12)
    + "opt.param_groups[0]['lr'] = 0.002\n" + LOOP.replace("range(3)", "range(18)"),
    "a scheduler that stops": ENDING.format("CosineAnnealingLR(opt, 8, 0.001)") + SCHEDULED.format(8)
    + LOOP.replace("range(3)", "range(18)"),
}  # fmt: skip
RATE_WORDS = ("were made with", "was made with", "holds no parameters", "has none")


@pytest.mark.parametrize("name", RATES)
def test_rates_that_no_step_uses_as_they_were_made_are_named(tmp_path: Path, name: str) -> None:
    body, text = RATES[name]
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in RATE_WORDS))
    assert text in found.text


@pytest.mark.parametrize("name", CHOSEN_ENDS)
def test_an_end_that_the_program_chooses_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, CHOSEN_ENDS[name]) if "falls from" in each.text] == []


@pytest.mark.parametrize("name", USUAL_RATES)
def test_usual_rates_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, USUAL_RATES[name])
    assert [each.text for each in found if any(word in each.text for word in RATE_WORDS)] == []


OWN_RATES = GROUPS.rpartition("schedule =")[0]
OTHER = """
first = nn.Linear(4, 4)
before = torch.optim.SGD(first.parameters(), lr=0.1)
for n in range(6):
    {}
    first(torch.randn(8, 4)).square().mean().backward()
    before.step()
"""
STEPS = "for n in range(8):\n    {}\n    opt.zero_grad()\n    f(torch.randn(8, 4)).backward()\n    opt.step()\n"
HELPER = "def set_rate(optimizer, rate):\n    for group in optimizer.param_groups:\n        group['lr'] = rate  #!\n"
TAKEN = "def set_rate(g, rate):\n    g.update(lr=rate)  #!\n"
SET_BY_LINES = {
    "in a helper": HELPER + OTHER.format("pass") + OWN_RATES + STEPS.format("set_rate(opt, 0.01 / (n + 1))"),
    "in a helper for both": HELPER + OTHER.format("set_rate(before, 0.1 / (n + 1))") + OWN_RATES
    + STEPS.format("set_rate(opt, 0.01 / (n + 1))"),
    "of a group that a helper takes": TAKEN + OWN_RATES
    + STEPS.format("[set_rate(g, 0.01 / (n + 1)) for g in opt.param_groups]"),
    "of two groups at once": OWN_RATES
    + STEPS.format("opt.param_groups[0]['lr'] = opt.param_groups[1]['lr'] = 0.01 / (n + 1)  #!"),
}  # fmt: skip
OTHER_LINES = {
    "the rate of another optimizer": OTHER.format("before.param_groups[0]['lr'] = 0.1 / (n + 1)") + GROUPS
    + SCHEDULED.format(8),
    "an item of a log": "log = {}\n" + GROUPS + SCHEDULED.format(8) + "log['lr'] = 0.1\n",
}  # fmt: skip


def same_rates(folder: Path, body: str, text: str = "a rate is set here") -> tuple[int, ...]:
    (found,) = (each for each in sentences(folder, body) if "have the same rate" in each.text)
    return tuple(label.span.line for label in found.labels if label.text == text)


@pytest.mark.parametrize("name", SET_BY_LINES)
def test_the_line_that_sets_one_rate_for_all_groups_is_labelled(tmp_path: Path, name: str) -> None:
    assert same_rates(tmp_path, SET_BY_LINES[name]) == (marked(SET_BY_LINES[name]),)


def test_of_two_lines_none_need_have_run(tmp_path: Path) -> None:
    branches = (
        "for group in opt.param_groups:\n        if n < 100:\n            group['lr'] = 0.01 / (n + 1)  #!\n"
        "        else:\n            group['lr'] = 0.001"
    )
    body = OWN_RATES + STEPS.format(branches)
    assert same_rates(tmp_path, body) == ()
    assert same_rates(tmp_path, body, "a rate may be set here") == (marked(body), marked(body) + 2)


@pytest.mark.parametrize("name", OTHER_LINES)
def test_a_line_that_sets_something_else_is_not(tmp_path: Path, name: str) -> None:
    assert same_rates(tmp_path, OTHER_LINES[name]) == ()


FIRST_ORDER = """
import copy
model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 1))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(4):
    opt.zero_grad()
    for _ in range(2):
        learner = copy.deepcopy(model)
        inner = torch.optim.SGD(learner[0].parameters(), lr=0.1)
        learner(torch.randn(8, 4)).square().mean().backward()
        inner.step()
        learner.zero_grad()
        learner(torch.randn(8, 4)).square().mean().backward()
        for p, q in zip(model.parameters(), learner.parameters()):
            p.grad = q.grad.clone() if p.grad is None else p.grad + q.grad
    opt.step()
"""


def test_gradients_of_copies_that_the_script_uses_need_no_optimizer(tmp_path: Path) -> None:
    assert [each.text for each in sentences(tmp_path, FIRST_ORDER) if "no optimizer" in each.text] == []
