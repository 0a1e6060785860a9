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
