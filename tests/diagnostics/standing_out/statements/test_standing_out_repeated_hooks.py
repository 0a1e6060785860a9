"""Checks the sentence about hooks that one line registers again and again."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WHAT = " hooks to "
NET = "net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))\n"
SGD = "opt = torch.optim.SGD(net.parameters(), lr=0.01)\nf = lambda: net(torch.randn(8, 4)).square().mean()\n"
UPDATE = "    opt.zero_grad()\n    f().backward()\n    opt.step()\n"
LOOP = "for step in range(4):\n"

WRONG = {
    "a scaling of the gradient": (
        NET + SGD + "def slow():\n    net[0].weight.register_hook(lambda g: g / 2)  #!\n"
        + LOOP + "    slow()\n" + UPDATE,
        "until the 4th pass: each backward pass that gets there runs all 4, and each returns another gradient",
    ),
    "noise in forward": (
        NET + SGD + "def noise(module, args, out):\n    return out + torch.randn_like(out)\n"
        + LOOP + "    net[0].register_forward_hook(noise)  #!\n" + UPDATE,
        "has added 4 hooks to one module until the 4th pass: each call of the module runs all 4",
    ),
    "a log in each epoch": (
        NET + SGD + "norms = []\ndef epoch():\n    for layer in (net[0], net[2]):\n"
        "        layer.register_full_backward_hook(lambda m, i, o: norms.append(o[0].norm()))  #!\n"
        "    for step in range(2):\n" + UPDATE.replace("    ", "        ") + "for _ in range(3):\n    epoch()\n",
        "hooks to each of 2 modules until the",
    ),
    "a step in backward": (
        NET + SGD + "seen = []\nclass Trainer:\n    def start(self):\n        for p in net.parameters():\n"
        "            p.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.norm()))  #!\n"
        + LOOP + "    Trainer().start()\n" + UPDATE,
        "has added 4 hooks to each of `net[0].weight`, `net[0].bias`, `net[2].weight` and 1 more until the 4th pass",
    ),
    "inside forward": (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(4, 1)\n"
        "    def forward(self, x):\n        self.fc.weight.register_hook(self.clip)  #!\n        return self.fc(x)\n"
        "    def clip(self, g):\n        return g.clamp(-1, 1)\nnet = Net()\n" + SGD + LOOP + UPDATE,
        "has added 4 hooks to `net.fc.weight` until the 4th pass",
    ),
}  # fmt: skip
RIGHT = {
    "registered once": NET + SGD + "for p in net.parameters():\n    p.register_hook(lambda g: g / 2)\n" + LOOP + UPDATE,
    "removed": NET + SGD + LOOP + "    handle = net[0].weight.register_hook(lambda g: g / 2)\n" + UPDATE
    + "    handle.remove()\n",
    "of a result": NET + SGD + LOOP + "    opt.zero_grad()\n    hidden = net[0](torch.randn(8, 4))\n"
    "    hidden.register_hook(lambda g: g.clamp(-1, 1))\n    net[2](hidden).sum().backward()\n    opt.step()\n",
    "two of one line from the start": NET + SGD
    + "for c in (2, 3):\n    net[0].weight.register_hook(lambda g, c=c: g / c)\n" + LOOP + UPDATE,
    "a new model each time": "for _ in range(3):\n    net = nn.Linear(4, 1)\n"
    "    net.weight.register_hook(lambda g: g / 2)\n"
    "    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n    for step in range(2):\n        opt.zero_grad()\n"
    "        net(torch.randn(8, 4)).sum().backward()\n        opt.step()\n",
    "a context that removes it": NET + SGD + "import contextlib\n@contextlib.contextmanager\ndef watched(layer, out):\n"
    "    handle = layer.register_forward_hook(lambda m, a, r: out.append(r.detach()))\n    try:\n        yield\n"
    "    finally:\n        handle.remove()\n" + LOOP + "    with watched(net[0], []):\n        f()\n" + UPDATE,
    "other layers each time": "net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(4)))\n" + SGD + LOOP
    + "    net[step].weight.register_hook(lambda g: g / 2)\n" + UPDATE,
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_names_hooks_that_add_up(case: str, tmp_path: Path) -> None:
    body, text = WRONG[case]
    found = [each for each in sentences(tmp_path, body) if text in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(body)]


@pytest.mark.parametrize("case", RIGHT)
def test_says_nothing_of_other_hooks(case: str, tmp_path: Path) -> None:
    assert not any(WHAT in each.text for each in sentences(tmp_path, RIGHT[case]))
