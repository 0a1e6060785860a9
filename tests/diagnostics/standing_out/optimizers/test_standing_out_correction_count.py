"""Checks the sentences about counts that correct averages."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

CLASS = """\
class Adam:
    def __init__(self, params):
        self.params, self.t = list(params), 0
        self.m = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        for i, p in enumerate(self.params):
            self.t += 1  #!
            self.m[i] = 0.9 * self.m[i] + (1 - 0.9) * p.grad
            p -= 0.01 * self.m[i] / (1 - 0.9 ** self.t)

net = nn.Linear(4, 2)
opt = Adam(net.parameters())
for epoch in range(2):
    for _ in range(4):
        net.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
"""
EPOCHS = """\
net = nn.Linear(4, 2)
params = list(net.parameters())
m = [torch.zeros_like(p) for p in params]
for epoch in range(3):
    for i, x in enumerate(torch.randn(32, 4).split(8)):
        grads = torch.autograd.grad(net(x).square().mean(), params)
        with torch.no_grad():
            for p, g, mean in zip(params, grads, m):
                mean.mul_(0.9).add_(g, alpha=1 - 0.9)
                p.sub_(0.01 * mean / (1 - 0.9 ** (i + 1)))  #!
"""
PLAIN = """\
net = nn.Linear(4, 2)
params, t = list(net.parameters()), 0
m = [torch.zeros_like(p) for p in params]
for epoch in range(6):
    net.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    t += 1
    c = 1 - 0.9 ** t
    with torch.no_grad():
        for p, mean in zip(params, m):
            mean.mul_(0.9).add_((1 - 0.9) * p.grad)
            p -= 0.01 * mean / c
"""
COUNT = "            self.t += 1  #!\n"
GROUPS = CLASS.replace("i, p in enumerate(self.params):", "group in [self.params]:").replace("self.t)", "c)")
GROUPS = GROUPS.replace("            p -=", "                p -=").replace("(1 - 0.9 ** c)", "c").replace(
    "            self.m", "            c = 1 - 0.9 ** self.t\n            for i, p in enumerate(group):\n    MEAN"
).replace("MEAN", "            self.m")  # fmt: skip
TUPLES = CLASS.replace(COUNT, "            self.m[i], t = self.m[i]\n            t += 1\n").replace("** self.t", "** t")
TUPLES = TUPLES.replace("[torch.zeros_like(p) for", "[(torch.zeros_like(p), 0) for")
TUPLES = TUPLES.replace("net = nn", "            self.m[i] = self.m[i], t\n\nnet = nn", 1)
TWO = CLASS.replace("nn.Linear(4, 2)", "nn.Linear(4, 2, bias=False)").replace(
    "opt = Adam(net.parameters())", "other = nn.Linear(2, 2, bias=False)\nopt, second = Adam(net.parameters()), Adam("
    "other.parameters())").replace("        net.zero_grad()", "        net.zero_grad(), other.zero_grad()").replace(
    "net(torch.randn(8, 4))", "other(net(torch.randn(8, 4)))")  # fmt: skip
GIVEN = CLASS.replace("def step(self)", "def step(self, t)").replace("            self.t += 1  #!\n", "")
GIVEN = GIVEN.replace(
    "self.t)", "t)  #!").replace("for _ in range(4)", "for k in range(4)").replace(
    "opt.step()", "opt.step(k + 1)")  # fmt: skip
SMOOTH = """\
class Smooth:
    def __init__(self):
        self.value = 0.0
    def start_epoch(self):
        self.value = 0.0
    def update(self, loss, count):
        self.value = 0.9 * self.value + (1 - 0.9) * loss
        return self.value / (1 - 0.9 ** count)  #!

net, smooth = nn.Linear(8, 2), Smooth()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    smooth.start_epoch()
    for i, x in enumerate(torch.randn(32, 8).split(8)):
        loss = net(x).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
        smooth.update(loss.item(), i + 1)
"""
INLINE = """\
net, value = nn.Linear(8, 2), 0.0
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for i, x in enumerate(torch.randn(32, 8).split(8)):
        loss = net(x).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
        value = 0.9 * value + (1 - 0.9) * loss.item()
        shown = value / (1 - 0.9 ** (i + 1))  #!
"""
WRONG = {
    "in a script": INLINE,
    "of an average of losses": SMOOTH.replace("    smooth.start_epoch()\n", ""),
    "in a class": CLASS,
    "of a group": CLASS.replace("self.t += 1", 'self.t["step"] = self.t["step"] + 1')
    .replace("** self.t", '** self.t["step"]')
    .replace("list(params), 0", "list(params), {'step': 0}"),
    "in a helper": CLASS.replace("opt.step()", "update()").replace(
        "for epoch", ("def update():\n    opt.step()\n\nfor epoch")
    ),
    "in the training loop": PLAIN.replace("    t += 1\n    c = 1 - 0.9 ** t\n", "")
    .replace("            mean.mul", ("            t += 1  #!\n            mean.mul"))
    .replace("/ c", "/ (1 - 0.9 ** t)"),
    "of an epoch": EPOCHS,
    "given to a method": GIVEN,
}
RIGHT = {
    "before the loop": CLASS.replace("            self.t += 1  #!\n", "").replace(
        "        for i, p", "        self.t += 1\n        for i, p"),
    "at the first parameter": CLASS.replace("            self.t += 1  #!", (
        "            if i == 0:\n                self.t += 1")),
    "of each parameter": CLASS.replace("list(params), 0", "list(params), [0, 0]").replace("self.t += 1  #!", (
        "self.t[i] += 1")).replace("** self.t", "** self.t[i]"),
    "in the training loop": PLAIN,
    "of each parameter, in a tuple": TUPLES,
    "of each parameter, at an attribute": CLASS.replace("list(params), 0", "list(params), [0, 0]").replace(
        "self.t += 1  #!", "self.i = i; self.t[self.i] += 1").replace("** self.t", "** self.t[self.i]"),
    "of each group": GROUPS,
    "of two optimizers": TWO + "        second.step()\n",
    "of a list of optimizers": TWO.replace("        opt.step()", (
        "        for each in (opt, second):\n            each.step()")),
    "one parameter": CLASS.replace("nn.Linear(4, 2)", "nn.Linear(4, 2, bias=False)"),
    "averages of an epoch": EPOCHS.replace("    for i, x", (
        "    m = [torch.zeros_like(p) for p in params]\n    for i, x")),
    "averages that are emptied": EPOCHS.replace("    for i, x", "    [each.zero_() for each in m]\n    for i, x"),
    "a count of all steps": EPOCHS.replace("(i + 1)", "(4 * epoch + i + 1)"),
    "a method that begins an epoch": SMOOTH,
    "a function that begins an epoch": SMOOTH.replace("    smooth.start_epoch()", "    begin()").replace(
        "for epoch", "def begin():\n    smooth.start_epoch()\n\nfor epoch"),
    "the first batch empties it": SMOOTH.replace("    smooth.start_epoch()\n", "").replace(
        "        loss =", "        if i == 0:\n            smooth = Smooth()\n        loss ="),
    "an average with a type": INLINE.replace("    for i", "    value: float = 0.0\n    for i"),
    "an average times zero": INLINE.replace("    for i", "    value *= 0\n    for i"),
    "one epoch": EPOCHS.replace("range(3)", "range(1)"),
    "an optimizer of an epoch": GIVEN.replace("opt = Adam(net.parameters())\n", "").replace(
        "    for k in", "    opt = Adam(net.parameters())\n    for k in"),
}  # fmt: skip
WORDS = ("counts parameters", "as if they began")


@pytest.mark.parametrize("name", WRONG)
def test_a_count_of_other_things_than_steps_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if any(words in each.text for words in WORDS))
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_counts_of_steps_are_left_alone(tmp_path: Path, name: str) -> None:
    found = [each.text for each in sentences(tmp_path, RIGHT[name])]
    assert [each for each in found if any(words in each for words in WORDS)] == []
