"""Checks the sentence about sums over parameters or modules to which no line ever adds."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = "net = nn.Sequential(nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Sequential(nn.Linear(8, 1)))\n"
PENALTY = """\
def penalty(model):
    total = 0.0
    for layer in model.children():
        if isinstance(layer, nn.Linear):
            total = total + layer.weight.square().sum()  #!
    return total

"""
TRAIN = """\
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    loss = (net(torch.randn(8, 4)) - 1).square().mean() + 0.01 * penalty(net)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FIT = TRAIN.replace(" + 0.01 * penalty(net)", "")
LOOP = TRAIN.replace(
    " + 0.01 * penalty(net)",
    """
    decay = 0
    for name, p in net.named_parameters():
        if "kernel" in name:
            decay += p.norm()  #!
    loss = loss + decay""",
)
SKIP = PENALTY.replace(
    "if isinstance(layer, nn.Linear):\n            total",
    ("if not isinstance(layer, nn.Linear):\n            continue\n        total"),
)
SUM = TRAIN.replace("penalty(net)", "sum(p.norm() for n, p in net.named_parameters() if 'kernel' in n)  #!")
TERMS = (
    PENALTY.replace("total = 0.0", "terms = []")
    .replace("total = total + layer.weight.square().sum()", ("terms.append(layer.weight.square().sum())"))
    .replace("return total", "return sum(terms)")
)
LIST = """\
class Fit:
    def __init__(self):
        self.pulled = [p for n, p in net.named_parameters() if n.startswith("body.")]
    def penalty(self):
        return sum([p.square().sum() for p in self.pulled])  #!

""" + TRAIN.replace("penalty(net)", "fit.penalty()").replace("opt =", "fit = Fit()\nopt =")
GAP = """\
def gap(w):
    gram = w.t().matmul(w)
    return (gram - torch.eye(len(gram))).square().sum()

"""
MAPPED = GAP + TRAIN.replace("    loss =", (
    "    chosen = [p for n, p in net.named_parameters() if n.split('.')[-1] == 'kernel']\n    loss =")).replace(
    "0.01 * penalty(net)", "sum(map(gap, chosen), torch.zeros(()))  #!")  # fmt: skip
HELPED = GAP + LOOP.replace("p.norm()", "gap(p)")
WRONG = {
    "a helper that map calls": NET + MAPPED,
    "a lambda that map calls": NET + MAPPED.replace("map(gap,", "map(lambda p: p.norm(),"),
    "a helper in a loop": NET + HELPED,
    "a helper in a comprehension": NET + GAP + SUM.replace("p.norm()", "gap(p)"),
    "a filter": NET + MAPPED.replace("[p for n, p in net.named_parameters() if n.split('.')[-1] == 'kernel']", (
        "list(filter(lambda m: isinstance(m, nn.Conv1d), net.modules()))")),
    "a function of torch": NET + LOOP.replace("p.norm()", "torch.linalg.vector_norm(p)"),
    "a method that arrays have too": NET + LOOP.replace("p.norm()", "p.max()"),
    "one of several words": NET + LOOP.replace('"kernel" in name', 'any(word in name for word in ("kernel", "gain"))'),
    "a pattern": NET + "import re\n" + LOOP.replace('"kernel" in name', 're.search(r"kernel$", name)'),
    "a sum of a generator": NET + SUM,
    "a sum of appended terms": NET + TERMS + TRAIN,
    "a sum over a list that chose none": NET + LIST,
    "a loop over a list that chose none": NET + LIST.replace(
        "        return sum([p.square().sum() for p in self.pulled])  #!",
        "        total = 0\n        for p in self.pulled:\n            total += p.square().sum()  #!\n"
        "        return total"),
    "children": NET + PENALTY + TRAIN,
    "zeros": NET + PENALTY.replace("0.0", "torch.zeros(())") + TRAIN,
    "added in place": NET + PENALTY.replace("total = total +", "total +=") + TRAIN,
    "names": NET + LOOP,
    "others are skipped": NET + SKIP + TRAIN,
    "nothing to run over": NET + PENALTY.replace("model.children()", "model[0][1].parameters()")
    .replace("        if isinstance(layer, nn.Linear):\n            total", "        total")
    .replace("layer.weight", "layer") + TRAIN,
}  # fmt: skip
RIGHT = {
    "a layer that a setting leaves out": "class Net(nn.Module):\n    def __init__(self, norm=False):\n"
    "        super().__init__()\n        layers = [nn.Linear(4, 8)]\n        if norm:\n"
    "            layers.append(nn.BatchNorm1d(8))\n"
    "        self.all = nn.Sequential(*layers, nn.Linear(8, 1))\n    def forward(self, x):\n"
    "        return self.all(x)\nnet = Net()\n" + PENALTY.replace("Linear", "BatchNorm1d").replace(
        "children", "modules") + TRAIN,
    "experts in place of a layer": "class Experts(nn.Linear):\n    pass\ndef make(experts=False):\n"
    "    middle = Experts(8, 8) if experts else nn.Linear(8, 8)\n"
    "    return nn.Sequential(nn.Linear(4, 8), middle, nn.Linear(8, 1))\nnet = make()\n"
    + PENALTY.replace("nn.Linear", "Experts") + TRAIN,
    "a helper that map calls": NET + MAPPED.replace("'kernel'", "'weight'"),
    "a helper that has run elsewhere": NET + MAPPED.replace("\nopt =", "\nprint(gap(net[0][0].weight))\nopt ="),
    "a helper that may do nothing": NET + MAPPED.replace("    gram = w", (
        "    if w.dim() < 2:\n        return 0\n    gram = w")),
    "a helper in a loop": NET + HELPED.replace("kernel", "weight").replace("len(gram)", "gram.dim() and len(gram)"),
    "words that an option gives": NET + "words = ()\n" + LOOP.replace('"kernel" in name', (
        "any(word in name for word in words)")),
    "a sum of a generator": NET + SUM.replace("kernel", "weight"),
    "a sum of appended terms": NET + TERMS.replace("children", "modules") + TRAIN,
    "a sum over a list": NET + LIST.replace("body.", "0."),
    "a sum of a generator below a condition": NET + SUM.replace("sum(p", "(0 if step < 9 else sum(p").replace(
        "in n)", "in n))"),
    "plain numbers of each parameter": NET + "import math\n" + FIT + (
        "bits = sum(math.log(p.numel()) for n, p in net.named_parameters() if n.endswith('weight'))\n"
        "sides = sum(max(p.shape) for p in net.parameters())\n"
        "rates = sum(float(m.in_features) for m in net.modules() if isinstance(m, nn.Linear))\n"),
    "a helper that counts": NET + "import numpy as np\ndef side(module):\n    return np.max(module.weight.shape)\n"
    + FIT + "print(sum(map(side, [m for m in net.modules() if isinstance(m, nn.Linear)])))\n"
    "bound = 0.0\nfor name, p in net.named_parameters():\n    if 'weight' in name:\n"
    "        bound += abs(p.dim() - 1)\n",
    "a count of a generator": NET + SUM.replace("p.norm()", "p.numel()"),
    "a sum that begins at another number": NET + SUM.replace("sum(p", "sum((p").replace("in n)", "in n), start=1)"),
    "modules": NET + PENALTY.replace("children", "modules") + TRAIN,
    "names": NET + LOOP.replace("kernel", "weight"),
    "others are skipped": NET + SKIP.replace("children", "modules") + TRAIN,
    "a schedule": NET + PENALTY.replace("if isinstance(layer, nn.Linear)", "if scale > 0") + "scale = 0\n" + TRAIN,
    "not called": NET + PENALTY + TRAIN.replace(" + 0.01 * penalty(net)", ""),
    "called below a condition": NET + PENALTY
    + TRAIN.replace("0.01 * penalty(net)", "(penalty(net) if step > 9 else 0.0)"),
    "a count": NET + PENALTY.replace("layer.weight.square().sum()", "1") + TRAIN,
    "a total of something else": NET + PENALTY.replace("total = 0.0", "total = model[0][0].bias.sum()") + TRAIN,
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_sum_that_stays_zero_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if "stays zero" in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_sum_that_may_be_zero_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "stays zero" in each.text] == []
