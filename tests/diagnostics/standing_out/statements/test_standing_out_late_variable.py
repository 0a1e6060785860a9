"""Checks the sentence about hooks and functions that use the variable of the loop that has made them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = "net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))\nscales = [0.1, 1.0, 0.1, 1.0]\n"
HOOKS = """\
for i, p in enumerate(net.parameters()):
    p.register_hook(lambda grad: grad * scales[i])  #!
"""
TRAIN = """\
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
NAMED = """\
for scale, p in zip(scales, net.parameters()):
    def scaled(grad):  #!
        return grad * scale
    p.register_hook(scaled)
"""
GROUPS = """\
opt = torch.optim.SGD([{"params": net[0].parameters()}, {"params": net[2].parameters()}], lr=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(opt, [lambda n: rate**n for rate in (0.9, 0.5)])  #!
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
    schedule.step()
"""
WRONG = {
    "a lambda": NET + HOOKS + TRAIN,
    "a function": NET + NAMED + TRAIN,
    "of modules": NET + HOOKS.replace("net.parameters()", "[net[0], net[2]]").replace(
        "register_hook(lambda grad: grad", "register_full_backward_hook(lambda module, inner, outer: inner[0] if "
        "inner[0] is None else (inner[0]").replace("scales[i])", "scales[i],))") + TRAIN,
    "functions of a schedule": NET + GROUPS,
}  # fmt: skip
DICT = GROUPS.replace(
    "schedule =",
    """\
def ramps():
    return {part: lambda n: rate**n for part, rate in {"a": 0.9, "b": 0.5}.items()}  #!
table = ramps()
schedule =""",
).replace("[lambda n: rate**n for rate in (0.9, 0.5)])  #!", '[table[part] for part in "ab"])')
LIST = GROUPS.replace(
    "schedule =",
    """\
made = []
for percent in (90, 50):
    rate = percent / 100
    made.append(lambda n: rate**n)  #!
schedule =""",
).replace("[lambda n: rate**n for rate in (0.9, 0.5)])  #!", "made)")
EACH = """\
opts = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in (net[0], net[2])]
schedules = []
for opt, rate in zip(opts, (0.9, 0.5)):
    schedules.append(torch.optim.lr_scheduler.LambdaLR(opt, lambda n: rate**n))  #!
for _ in range(3):
    net(torch.randn(8, 4)).square().mean().backward()
    for opt, schedule in zip(opts, schedules):
        opt.step()
        schedule.step()
"""
IN_TURN = """\
def train(opt, schedule):
    for _ in range(3):
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
        schedule.step()
for rate in (0.9, 0.5):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    train(opt, torch.optim.lr_scheduler.LambdaLR(opt, lambda n: rate**n))
"""
WRONG |= {
    "a dict that a function returns": NET + DICT,
    "a list that a loop fills": NET + LIST,
    "a scheduler for each optimizer": NET + EACH,
}
WARMUP = """\
for step, p in enumerate(net.parameters()):
    p.register_hook(lambda grad: grad * min(1, (step + 1) / 3))  #!
"""
FACTOR = """\
for scale, p in zip(scales, net.parameters()):
    factor = 2 * scale
    p.register_hook(lambda grad: grad * factor)  #!
"""
WRONG |= {
    "a later loop that trains nothing": NET + HOOKS
    + "for i, p in enumerate(net.parameters()):\n    print(i, p.shape)\n" + TRAIN
    + "    for i, p in enumerate(net.parameters()):\n        print(i, p.grad.norm())\n",
    "an earlier loop that trains": NET + TRAIN.replace("for _", "for step") + WARMUP + TRAIN,
    "the variable of a training function": NET + WARMUP + "def train():\n"
    + textwrap.indent(TRAIN.replace("for _", "for step"), "    ") + "train()\n",
}  # fmt: skip
RIGHT = {
    "the variable of the training loop": NET + WARMUP + TRAIN.replace("for _", "for step"),
    "set in each step": NET + FACTOR + TRAIN.replace("range(3):\n", "range(3):\n    factor = min(1, _ / 3)\n"),
    "set by a function": NET + FACTOR + "def warm(n):\n    global factor\n    factor = min(1, n / 3)\n"
    + TRAIN.replace("range(3):\n", "range(3):\n    warm(_)\n"),
    "the variable of a while loop": NET + WARMUP + TRAIN.replace("for _ in range(3)", "step = 0\nwhile step < 3")
    + "    step += 1\n",
    "a dict with defaults": NET + DICT.replace("lambda n:", "lambda n, rate=rate:"),
    "a list that a loop fills by a function": NET + "def power(rate):\n    return lambda n: rate**n\n"
    + LIST.replace("lambda n: rate**n", "power(rate)"),
    "one round after the other": NET + IN_TURN,
    "hooks of one round after the other": NET + "def train():\n"
    + textwrap.indent(TRAIN.replace("net(", "layer("), "    ")
    + "for scale, layer in ((1, net), (2, nn.Linear(4, 2))):\n"
    "    opt = torch.optim.SGD(layer.parameters(), lr=0.1)\n"
    "    for p in layer.parameters():\n        p.register_hook(lambda grad: grad * scale)\n    train()\n",
    "a default argument": NET + HOOKS.replace("lambda grad:", "lambda grad, i=i:") + TRAIN,
    "a function that makes it": NET + "def scaled(i):\n    return lambda grad: grad * scales[i]\n"
    + HOOKS.replace("lambda grad: grad * scales[i]", "scaled(i)") + TRAIN,
    "another variable": NET + HOOKS.replace("scales[i]", "scales[0]") + TRAIN,
    "a loop that trains": NET + TRAIN.replace("for _ in", "for scale in").replace("range(3)", "scales").replace(
        "    opt.zero_grad()", "    for p in net.parameters():\n        p.register_hook(lambda grad: grad * scale)\n"
        "    opt.zero_grad()"),
    "functions with defaults": NET + GROUPS.replace("lambda n:", "lambda n, rate=rate:"),
    "not given to PyTorch": NET + "made = [lambda: rate for rate in scales]\n" + TRAIN,
}  # fmt: skip
WORDS = "then has its last value"


@pytest.mark.parametrize("name", WRONG)
def test_a_variable_that_is_read_late_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_variable_of_its_own_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
