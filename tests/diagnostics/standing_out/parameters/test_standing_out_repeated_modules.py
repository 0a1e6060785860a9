"""Checks the sentences about modules that a list repeats, and about averages that an optimizer steps as well."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

DATA = "import copy\nx, y = torch.randn(32, 4), torch.randn(32, 4)\n"
TRAIN = """\
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    h = x
    for layer in model:
        h = layer(h)
    loss = (h - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
KEYS = """\
q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
k = copy.deepcopy(q)
for _ in range(4):
    loss = nn.functional.cross_entropy(q(x) @ k(x + 0.1 * torch.randn_like(x)).T, torch.arange(32))
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for a, b in zip(k.parameters(), q.parameters()):
            UPDATE
"""
BOTH = "opt = torch.optim.SGD([*q.parameters(), *k.parameters()], lr=0.1)\n"
SPEC = "import dataclasses\n@dataclasses.dataclass\nclass Spec:\n    size: int\n"


def keys(made: str, update: str) -> str:
    return DATA + KEYS.replace("for _ in range(4)", f"{made}for _ in range(4)", 1).replace("UPDATE", update)


WRONG = {
    "a list times a number": (
        DATA + "model = nn.ModuleList([nn.Linear(4, 4)] * 3)  #!\n" + TRAIN,
        "`[nn.Linear(4, 4)] * 3` repeats the result of one call: `nn.Linear()` makes `layer.weight` and `layer.bias`"),
    "the keys of a dict": (
        DATA + "model = nn.ModuleDict(dict.fromkeys('abc', nn.Linear(4, 4)))  #!\n"
        + TRAIN.replace("in model:", "in model.values():"),
        "`dict.fromkeys('abc', nn.Linear(4, 4))` repeats the result of one call: `nn.Linear()` makes "),
    "a default value": (
        DATA + "class Block(nn.Module):\n    def __init__(self, layer=nn.Linear(4, 4)):  #!\n"
        "        super().__init__()\n        self.layer = layer\n    def forward(self, x):\n"
        "        return self.layer(x)\nmodel = nn.ModuleList(Block() for _ in range(3))\n" + TRAIN,
        "the default value `nn.Linear(4, 4)` is made once, with the class: each `Block` that gets no other one has "),
    "a default value beside another argument": (
        DATA + "class Block(nn.Module):\n    def __init__(self, size, layer=nn.Linear(4, 4)):  #!\n"
        "        super().__init__()\n        self.layer, self.own = layer, nn.Linear(size, size)\n"
        "    def forward(self, x):\n        return self.own(self.layer(x))\n"
        "model = nn.ModuleList(Block(4) for _ in range(3))\n" + TRAIN,
        "the default value `nn.Linear(4, 4)` is made once, with the class: each `Block` that gets no other one has "),
    "a field of a dataclass": (
        DATA + SPEC + "    layer: nn.Module = nn.Linear(4, 4)  #!\n"
        "model = nn.ModuleList(spec.layer for spec in map(Spec, (1, 2)))\n" + TRAIN,
        "the default value `nn.Linear(4, 4)` is made once, with the class: each `Spec` that gets no other one has "),
    "an argument of a function": (
        DATA + "def block(size, layer=nn.Linear(4, 4)):  #!\n    return nn.Sequential(nn.Linear(4, size), layer)\n"
        "model = nn.ModuleList([block(4), block(4)])\n" + TRAIN,
        "the default value `nn.Linear(4, 4)` is made once, with the function: each call of `block` that gets "),
    "a number of a variable": (
        DATA + "depth = 3\ndef block():\n    return nn.Sequential(nn.Linear(4, 4), nn.ReLU())\n"
        "model = nn.Sequential(*(depth * [block()]))  #!\n" + TRAIN,
        "`depth * [block()]` repeats the result of one call: `block()` makes "),
    "keys that are stepped": (
        keys(BOTH, "a.mul_(0.99).add_(b, alpha=0.01)  #!"),
        "writes `k[0].weight`, `k[0].bias`, `k[2].weight` and 1 more from `q[0].weight`"),
    "keys by lerp": (keys(BOTH, "a.lerp_(b, 0.01)  #!"), "and `SGD` steps them by gradients of their own, too"),
    "keys by data": (keys(BOTH, "a.data = 0.9 * a.data + 0.1 * b.data  #!"), "steps them by gradients of their own"),
}  # fmt: skip
RIGHT = {
    "a default that one of two calls takes": DATA + "def make(width, last=nn.PReLU()):\n"
    "    return nn.Sequential(nn.Linear(4, width), last, nn.Linear(width, 4))\n"
    "model = make(4) if len(x) > 8 else make(64)\n" + TRAIN,
    "a default that the program reads from the class": DATA + "import dataclasses\n@dataclasses.dataclass\n"
    "class Task:\n    head: nn.Module\n    body: nn.Module = nn.Linear(4, 4)\n"
    "tasks = [Task(nn.Linear(4, 4)) for _ in range(2)]\nmodel = nn.Sequential(Task.body, *(t.head for t in tasks))\n"
    + TRAIN.replace("for layer in model:\n        h = layer(h)", "for t in tasks:\n        h = h + t.head(t.body(x))"),
    "a list of layers": DATA + "model = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])\n" + TRAIN,
    "a default value that is used once": DATA + "class Block(nn.Module):\n"
    "    def __init__(self, layer=nn.Linear(4, 4)):\n        super().__init__()\n        self.layer = layer\n"
    "    def forward(self, x):\n        return self.layer(x)\nlayers = Block(), Block(nn.Linear(4, 4))\n"
    "model = nn.ModuleList(layers)\n"
    + TRAIN,
    "keys with a layer each": DATA + "model = nn.ModuleDict({name: nn.Linear(4, 4) for name in 'abc'})\n"
    + TRAIN.replace("in model:", "in model.values():"),
    "keys with a shared layer": DATA + "layer = nn.Linear(4, 4)\nmodel = nn.ModuleDict(dict.fromkeys('abc', layer))\n"
    + TRAIN.replace("in model:", "in model.values():"),
    "a default value that is given": DATA + "class Block(nn.Module):\n"
    "    def __init__(self, size, layer=nn.Linear(4, 4)):\n        super().__init__()\n        self.layer = layer\n"
    "    def forward(self, x):\n        return self.layer(x)\nlayers = Block(4), Block(4, nn.Linear(4, 4))\n"
    "model = nn.ModuleList(layers)\n"
    + TRAIN,
    "a field that is made for each": DATA + SPEC
    + "    layer: nn.Module = dataclasses.field(default_factory=lambda: nn.Linear(4, 4))\n"
    "model = nn.ModuleList(spec.layer for spec in map(Spec, (1, 2)))\n" + TRAIN,
    "a field that is taken once": DATA + SPEC + "    layer: nn.Module = nn.Linear(4, 4)\n"
    "model = nn.ModuleList(spec.layer for spec in [Spec(1), Spec(2, nn.Linear(4, 4))])\n" + TRAIN,
    "a shared layer": DATA + "layer = nn.Linear(4, 4)\nmodel = nn.ModuleList([layer] * 3)\n" + TRAIN,
    "layers without parameters": DATA + "model = nn.Sequential(nn.Linear(4, 4), *[nn.ReLU()] * 2)\n" + TRAIN,
    "a model whose name says it": DATA + (
        "class TinyAlbert(nn.Module):\n    def __init__(self, depth=3):\n        super().__init__()\n"
        "        self.blocks = nn.Sequential(*[nn.Linear(4, 4)] * depth)\n"
        "    def forward(self, x):\n        return self.blocks(x)\nmodel = TinyAlbert().blocks\n") + TRAIN,
    "shared, as a comment says": DATA + "model = nn.ModuleList([nn.Linear(4, 4)] * 3)  # one layer, shared\n" + TRAIN,
    "shared, as the docstring says": DATA + (
        'class Net(nn.Module):\n    """Shares its layer."""\n    def __init__(self):\n        super().__init__()\n'
        "        self.parts = nn.ModuleList([nn.Linear(4, 4)] * 3)\nmodel = Net().parts\n"
    ) + TRAIN,
    "once": DATA + "model = nn.ModuleList([nn.Linear(4, 4)] * 1)\n" + TRAIN,
    "keys of no optimizer": keys("opt = torch.optim.SGD(q.parameters(), lr=0.1)\n", "a.lerp_(b, 0.01)"),
    "keys without gradients": keys("k.requires_grad_(False)\n" + BOTH, "a.lerp_(b, 0.01)"),
    "weights that are clipped": keys(BOTH, "a.clamp_(-1, 1)"),
    "weights pulled to the first ones": keys(
        "first = [p.detach().clone() for p in k.parameters()]\n" + BOTH, (
        "pass\n        for a, b in zip(k.parameters(), first):\n            a.lerp_(b, 0.01)")),
    "an inner loop that begins with a copy": keys(
        "opt = torch.optim.SGD(q.parameters(), lr=0.1)\ninner = torch.optim.SGD(k.parameters(), lr=0.1)\n",
        "a.copy_(b)\n    inner.step()"),
    "a population": keys(
        "opt = torch.optim.SGD(q.parameters(), lr=0.1)\ninner = torch.optim.SGD(k.parameters(), lr=0.1)\n",
        "a.lerp_(b, 0.5)\n    inner.step()"),
    "keys that are copied": keys(BOTH, "a.copy_(b)"),
    "both averaged with each other": keys(BOTH, "m = (a + b) / 2; a.copy_(m); b.copy_(m)"),
}  # fmt: skip
WORDS = ("the result of one call", "gradients of their own", "the default value")


@pytest.mark.parametrize("name", WRONG)
def test_a_repeated_or_averaged_module_is_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_modules_of_their_own_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []
