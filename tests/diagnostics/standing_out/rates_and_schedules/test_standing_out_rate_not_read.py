"""Checks the sentence about an optimizer of the program that does not read the learning rate of its groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

CLASS = """\
class Signed(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, decay=0.0):
        super().__init__(params, dict(lr=lr, decay=decay))

    @torch.no_grad()
    def step(self, closure=None):
        lr = self.defaults["lr"]  #!
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.mul_(1 - lr * group["decay"])
                    p.add_(p.grad.sign(), alpha=-lr)
"""
RUN = """\
net = nn.Linear(4, 1)
opt = Signed(net.parameters(), lr=0.01)
plan = torch.optim.lr_scheduler.StepLR(opt, 2, gamma=0.5)
for _ in range(8):
    opt.zero_grad()
    net(torch.randn(16, 4)).pow(2).mean().backward()
    opt.step()
    plan.step()
"""
PLAIN = CLASS + RUN
OWN = """\
from torch.optim import Optimizer

class Momentum(Optimizer):
    def __init__(self, params, lr=0.1, beta=0.9):
        super().__init__(params, {"lr": lr})
        self.rate = lr
        self.beta = beta

    def _change(self, p):
        state = self.state[p]
        state["mean"] = self.beta * state.get("mean", 0) + p.grad
        p.data -= self.rate * state["mean"]  #!

    def step(self, closure=None):
        for number, group in enumerate(self.param_groups):
            for p in group["params"]:
                self._change(p)
"""
KEPT = OWN + RUN.replace("Signed", "Momentum")
BY_HAND = RUN.replace("    plan.step()\n", "    for g in opt.param_groups:\n        g['lr'] *= 0.9\n").replace(
    "plan = torch.optim.lr_scheduler.StepLR(opt, 2, gamma=0.5)\n", ""
)
WRONG = {
    "defaults": PLAIN,
    "defaults by get": PLAIN.replace('self.defaults["lr"]', 'self.defaults.get("lr")'),
    "an attribute of its own": KEPT,
    "a rate that the script changes": CLASS + BY_HAND,
    "groups in reverse": PLAIN.replace("in self.param_groups", "in reversed(self.param_groups)"),
    "no closure, and an option by get": PLAIN.replace('group["decay"]', 'group.get("decay", 0.0)'),
}  # fmt: skip
HELPER = """\
import types

class Mover(torch.optim.Optimizer):
    def __init__(self, params, cfg):
        self.cfg = cfg
        super().__init__(params, {"lr": cfg.lr, "decay": cfg.decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                self._move(p, group)

    def _move(self, p, options):
        rate = self.cfg.lr  #!
        p.mul_(1 - rate * options["decay"]).sub_(rate * p.grad.sign())
""" + RUN.replace(
    "Signed(net.parameters(), lr=0.01)", ("Mover(net.parameters(), types.SimpleNamespace(lr=0.01, decay=0.1))")
)
WRONG |= {
    "a group that another method is given": HELPER,
    "a dict of options": HELPER.replace("cfg.lr", 'cfg["lr"]')
    .replace("cfg.decay", 'cfg["decay"]')
    .replace("types.SimpleNamespace(", "dict("),
    "the rate of an argument": KEPT.replace("params, lr=0.1, beta=0.9", "params, cfg, beta=0.9")
    .replace('"lr": lr', '"lr": cfg.lr')
    .replace("= lr", "= cfg.lr")
    .replace("lr=0.01)", ("type('Config', (), {'lr': 0.01}))")),
}
DEFAULT = '        lr = self.defaults["lr"]  #!\n'
LOOP = "            for p in"
BASE = PLAIN.replace(DEFAULT, '        base = self.defaults["lr"]\n')
RIGHT = {
    "a method that reads the rate of the group": HELPER.replace("self.cfg.lr", 'options["lr"]'),
    "a method that gives the group to a function": HELPER.replace("self.cfg.lr", (
        "rate_of(options) if options else self.cfg.lr")).replace("class M", (
        "def rate_of(group):\n    return group['lr']\n\nclass M")),
    "a method by a variable": HELPER.replace("self._move(p, group)", (
        "move = self._move\n                move(p, group)")),
    "options that a line changes": HELPER.replace("    plan.step()", "    plan.step()\n"
        "    opt.cfg.lr = plan.get_last_lr()[0]"),
    "the rate of the group": PLAIN.replace(DEFAULT, "").replace(LOOP, '            lr = group["lr"]\n' + LOOP),
    "the rate of the group by get": BASE.replace(LOOP, '            lr = group.get("lr", base)\n' + LOOP),
    "the rate of the first group": PLAIN.replace('self.defaults["lr"]  #!', 'self.param_groups[0]["lr"]'),
    "options by name": BASE.replace(LOOP, "            lr, decay = (group[k] for k in ('lr', 'decay'))\n" + LOOP),
    "a key of the file": "KEY = 'lr'\n" + BASE.replace(LOOP, "            lr = group[KEY]\n" + LOOP),
    "a function that is given the group": "def rate_of(g):\n    return g['lr']\n\n"
    + BASE.replace(LOOP, "            lr = rate_of(group)\n" + LOOP),
    "a function that is given the optimizer": "def rate_of(o):\n    return o.param_groups[0]['lr']\n\n"
    + BASE.replace(LOOP, "            lr = rate_of(self)\n" + LOOP),
    "a constant rate": CLASS + RUN.replace("    plan.step()\n", ""),
    "defaults that a line changes": PLAIN.replace("    plan.step()", "    plan.step()\n"
        "    opt.defaults['lr'] = plan.get_last_lr()[0]"),
    "an attribute that a line changes": KEPT.replace("    plan.step()", "    plan.step()\n"
        "    opt.rate = plan.get_last_lr()[0]"),
    "a property": KEPT.replace("        self.rate = lr\n", "").replace(
        "    def _c", "    @property\n    def rate(self):\n        return self.param_groups[0]['lr']\n\n    def _c"),
    "an optimizer of PyTorch": RUN.replace("Signed", "torch.optim.SGD"),
    "a class that extends SGD": "class Signed(torch.optim.SGD):\n    def step(self, closure=None):\n"
        "        self.seen = self.defaults['lr']\n        return super().step(closure)\n" + RUN,
    "the ratio of the rates": BASE.replace(LOOP, "            lr = group['lr'] / base * 0.01\n" + LOOP),
}  # fmt: skip
WORDS = "as its learning rate"


@pytest.mark.parametrize("name", WRONG)
def test_a_rate_that_no_step_reads_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_rate_that_steps_read_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


def test_the_sentence_says_how_the_rate_changes(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, PLAIN) if WORDS in each.text)
    assert found.text.startswith('`Signed` uses `self.defaults["lr"]` as its learning rate')
    assert "changes between 0.00125 and 0.01 in 8 steps" in found.text


WRAPPER = """\
class Sharp(torch.optim.Optimizer):
    def __init__(self, params, kind, rho=0.05, **options):
        super().__init__(params, dict(rho=rho, **options))
        groups = [{k: v for k, v in g.items() if k != "rho"} for g in self.param_groups]
        self.inner = kind(groups, **options)  #!

    @torch.no_grad()
    def step(self, closure):
        with torch.enable_grad():
            loss = closure()
        norm = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]).norm()
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["at"] = p.clone()
                p.add_(p.grad, alpha=float(group["rho"] / norm))
        self.zero_grad()
        with torch.enable_grad():
            closure()
        for group in self.param_groups:
            for p in group["params"]:
                p.copy_(self.state[p]["at"])
        self.inner.step()
        self.zero_grad()
        return loss

net = nn.Linear(4, 1)
opt = Sharp(net.parameters(), torch.optim.SGD, lr=0.1)
plan = torch.optim.lr_scheduler.StepLR(opt, 2, gamma=0.5)
x = torch.randn(16, 4)
def closure():
    loss = net(x).pow(2).mean()
    loss.backward()
    return loss
for _ in range(8):
    opt.step(closure)
    plan.step()
"""
GROUPS = """        groups = [{k: v for k, v in g.items() if k != "rho"} for g in self.param_groups]
        self.inner = kind(groups, **options)  #!
"""
INNER_WRONG = {
    "copied groups": WRAPPER,
    "copies by dict": WRAPPER.replace('{k: v for k, v in g.items() if k != "rho"}', "dict(g)"),
    "the same parameters": WRAPPER.replace("        super()", "        params = list(params)\n        super()").replace(
        GROUPS, "        self.inner = kind(params, **options)  #!\n"),
    "an optimizer that it is given": WRAPPER.replace(GROUPS, "        self.inner = kind\n").replace(
        "torch.optim.SGD, lr", "torch.optim.SGD(net.parameters(), lr=0.1), lr").replace("lr=0.1)\nplan", (
        "lr=0.1)  #!\nplan")),
    "rates that a line sets": WRAPPER.replace("    plan.step()\n", (
        "    for g in opt.param_groups: g['lr'] *= 0.9\n")).replace("plan =", "# plan ="),
}  # fmt: skip
INNER = WRAPPER.replace("  #!", "")
INNER_RIGHT = {
    "the same groups": INNER.replace(GROUPS.replace("  #!", ""), (
        "        self.inner = kind(self.param_groups, **options)\n"
        "        self.param_groups = self.inner.param_groups\n")),
    "a rate that is given on": INNER.replace("        self.inner.step()", (
        "        for a, b in zip(self.inner.param_groups, self.param_groups): a['lr'] = b['lr']\n"
        "        self.inner.step()")),
    "a schedule of the inner one": INNER.replace("StepLR(opt, ", "StepLR(opt.inner, "),
    "a rate that a line outside reads": INNER.replace("    plan.step()\n", (
        "    with torch.no_grad(): net.weight.mul_(1 - 0.1 * opt.param_groups[0]['lr'])\n    plan.step()\n")),
    "no schedule": INNER.replace("    plan.step()\n", ""),
    "two optimizers": OWN.replace("  #!", "").replace("p.data -= self.rate", (
        "p.data -= self.param_groups[0]['lr']"))
    + RUN.replace("Signed", "Momentum").replace("plan =", "other = torch.optim.SGD(net.parameters(), lr=0.01)\nplan =")
    .replace("    opt.step()", "    opt.step()\n    other.step()"),
}  # fmt: skip


@pytest.mark.parametrize("name", INNER_WRONG)
def test_an_inner_optimizer_with_a_constant_rate_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, INNER_WRONG[name]) if "leaves the updates" in each.text)
    assert found.labels[0].span.line == marked(INNER_WRONG[name])
    assert "`Sharp` leaves the updates to another optimizer, `SGD`, whose `lr` stays 0.1" in found.text


@pytest.mark.parametrize("name", INNER_RIGHT)
def test_an_inner_optimizer_that_gets_the_rate_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, INNER_RIGHT[name]) if "leaves the updates" in each.text] == []
