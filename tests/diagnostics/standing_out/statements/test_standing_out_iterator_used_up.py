"""Checks the sentence about iterators that a program reads again and again."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = (
    "net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))\nx, y = torch.randn(16, 4), torch.randn(16, 1)\n"
)
WEIGHTS = "weights = (p for p in net.parameters() if p.dim() > 1)\n"
TRAIN = """\
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    loss = (net(x) - y).square().mean()
    loss = loss + 0.01 * sum(w.square().sum() for w in weights)  #!
    loss.backward()
    opt.step()
"""
LOOP = """\
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    (net(x) - y).square().mean().backward()
    for p in weights:  #!
        p.grad.mul_(0.5)
    opt.step()
"""
AVERAGE = """\
import copy
class Average:
    def __init__(self, model):
        self.shadow = [p.detach().clone() for p in model.parameters()]
        self.params = model.parameters()

    @torch.no_grad()
    def update(self):
        for s, p in zip(self.shadow, self.params):  #!
            s.lerp_(p, 0.1)

average = Average(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    (net(x) - y).square().mean().backward()
    opt.step()
    average.update()
"""
WITHIN = AVERAGE.replace("    @torch.no_grad()\n", "").replace(
    "        for s, p in zip(self.shadow, self.params):  #!\n            s.lerp_(p, 0.1)",
    "        with torch.no_grad():\n            for s, p in zip(self.shadow, self.params):  #!\n"
    "                s.lerp_(p, 0.1)",
)
FUNCTION = """\
def fit(model):
    weights = filter(lambda p: p.dim() > 1, model.parameters())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        opt.zero_grad()
        loss = (model(x) - y).square().mean()
        penalty = sum([w.abs().sum() for w in weights])  #!
        (loss + 0.01 * penalty).backward()
        opt.step()

fit(net)
"""
GIVEN = """\
def nearness(model, others):
    total = torch.zeros(())
    for p, other in zip(model.parameters(), others):
        total = total + (p - other).square().sum()
    return total

def fit(model, start):
    others = start.parameters()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        opt.zero_grad()
        loss = (model(x) - y).square().mean()
        loss = loss + 0.1 * nearness(model, others)  #!
        loss.backward()
        opt.step()

import copy
for _ in range(3):
    fit(copy.deepcopy(net), net)
"""
SITES = """\
import copy
class Site:
    def __init__(self, net):
        self.net = copy.deepcopy(net)
        self.anchor = [p.detach().clone() for p in net.parameters()]
        self.pairs = zip(self.net.parameters(), self.anchor)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def step(self):
        loss = (self.net(x) - y).square().mean()
        loss = loss + 0.1 * sum((p - a).square().sum() for p, a in self.pairs)  #!
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

for site in [Site(net) for _ in range(3)]:
    for _ in range(4):
        site.step()
"""
GLOBAL = """\
def penalty():
    return sum(w.square().sum() for w in weights)  #!

opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    loss = (net(x) - y).square().mean()
    (loss + 0.01 * penalty()).backward()
    opt.step()
"""
NEAR = """\
class Trainer:
    def __init__(self, model):
        self.model = model
        self.start = [p.detach().clone() for p in model.parameters() if p.requires_grad]

    def away(self, params):
        total = torch.zeros(())
        for p, before in zip(params, self.start):
            total = total + (p - before).square().sum()
        return total

    def fit(self):
        params = filter(lambda p: p.requires_grad, self.model.parameters())
        opt = torch.optim.SGD(params, lr=0.1)
        for _ in range(4):
            loss = (self.model(x) - y).square().mean()
            loss = loss + 0.1 * self.away(params=params)  #!
            opt.zero_grad()
            loss.backward()
            opt.step()

Trainer(net).fit()
"""
ANCHORS = """\
params = filter(lambda p: p.requires_grad, net.parameters())
anchors = [p.detach().clone() for p in net.parameters() if p.requires_grad]
opt = torch.optim.SGD(params, lr=0.1)
for _ in range(4):
    loss = (net(x) - y).square().mean()
    penalty = sum(((p - a) ** 2).sum() for p, a in zip(params, anchors))  #!
    loss = loss + 0.1 * penalty
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
UNTAKEN = ANCHORS.replace("SGD(params", "SGD(net.parameters()")
WRONG = {
    "that an optimizer took, zipped": NET + ANCHORS,
    "that an optimizer took, in a method": NET + NEAR,
    "zipped with a list that stays": NET + UNTAKEN,
    "of several objects": NET + SITES,
    "a variable of the file": NET + WEIGHTS + GLOBAL,
    "an item of a dict": NET
    + "run = {}\n"
    + WEIGHTS.replace("weights =", "run['weights'] =")
    + TRAIN.replace("in weights", "in run['weights']"),
    "given to a function": NET + GIVEN,
    "a penalty": NET + WEIGHTS + TRAIN,
    "a loop": NET + WEIGHTS + LOOP,
    "named parameters": NET + "weights = net.named_parameters()\n" + LOOP.replace("for p in", "for _, p in"),
    "an attribute": NET + AVERAGE,
    "below `with`": NET + WITHIN,
    "in a function": NET + FUNCTION,
}
RIGHT = {
    "of objects that read it once": NET + SITES.replace("range(4)", "range(1)"),
    "a variable that a function makes anew": NET + WEIGHTS
    + GLOBAL.replace("    return", "    weights = list(net.parameters())\n    return"),
    "a function that runs once": NET + WEIGHTS
    + GLOBAL.replace("penalty()).b", "1).b").replace("opt = ", "print(penalty())\nopt = "),
    "a list that an optimizer took": NET
    + ANCHORS.replace("= filter", "= list(filter").replace("ters())\n", "ters()))\n", 1),
    "zipped with a list that is filled": NET
    + UNTAKEN.replace("[p.detach().clone() for p in net.parameters() if p.requires_grad]", "[]").replace(
        "    opt.step()", "    opt.step()\n    anchors.append(0.0)"),
    "an optimizer for each round": NET + ANCHORS.replace("opt = torch.optim.SGD(params, lr=0.1)\n", "").replace(
        "    opt.zero", "    params = filter(lambda p: p.requires_grad, net.parameters())\n"
        "    opt = torch.optim.SGD(params, lr=0.1)\n    opt.zero"),
    "zipped with a list": NET + "weights = (p for p in net.parameters())\nfew = [1, 2]\n"
    + LOOP.replace("for p in weights:  #!", "for p, _ in zip(weights, few):"),
    "the first of some": NET + "weights = (p for p in net.parameters())\n"
    + LOOP.replace("for p in weights:  #!\n        p.grad", (
        "if _ < 3:\n        next(p for p in weights if p.dim()).grad")),
    "without an end": NET + "import itertools\nweights = ((net[0].weight, i) for i in itertools.count())\n"
    + LOOP.replace("for p in weights:  #!\n        p.", "for (p, _), _ in zip(weights, range(2)):\n        p."),
    "a round that may go on before": NET + WEIGHTS
    + LOOP.replace("    for p in weights:  #!", "    if _ < 3:\n        continue\n    for p in weights:"),
    "a list that is given": NET + GIVEN.replace("= start.parameters()", "= list(start.parameters())"),
    "given once in each run": NET + GIVEN.replace("range(4)", "range(1)"),
    "given to a function that may not read it": NET + GIVEN.replace("    total = torch", (
        "    if len(model) > 5:\n        return torch.zeros(())\n    total = torch")).replace(
        "    for p, other in", "    if len(model) > 5:\n      for p, other in"),
    "a variable of another function": NET + GIVEN.replace("nearness(model, others)  #!", "nearness(model, [])"),
    "a list": NET + WEIGHTS.replace("(p", "[p").replace("1)", "1]") + TRAIN,
    "made again in each round": NET + TRAIN.replace("    loss = loss", "    " + WEIGHTS + "    loss = loss"),
    "asked for in each round": NET + TRAIN.replace("in weights)", "in net.parameters())"),
    "read once, before training": NET + WEIGHTS + "for p in weights:\n    nn.init.normal_(p.data)\n"
    + TRAIN.replace("    loss = loss + 0.01 * sum(w.square().sum() for w in weights)  #!\n", ""),
    "a method of the program's own": NET + "class Bank:\n    def parameters(self):\n"
    "        return list(net.parameters())\nweights = Bank().parameters()\n" + TRAIN,
    "a loop that stops": NET + "weights = iter(range(100))\n"
    + LOOP.replace("p in weights:  #!\n        p.grad.mul_(0.5)", "p in weights:\n        break"),
    "below a condition": NET + WEIGHTS
    + LOOP.replace("    for p in weights:  #!\n    ", "    if _ == 0:\n        for p in weights:\n        "),
    "an object for each task": NET + AVERAGE.replace("average = Average(net)\n", "").replace(
        "    average.update()", "    average = Average(net)\n    average.update()"),
    "a function that runs twice": NET + FUNCTION.replace("for _ in range(4)", "for _ in range(1)") + "fit(net)\n",
}  # fmt: skip
WORDS = "yields its items once"
OTHERS = """\
class Net(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
    def forward(self, x):
        for layer in self.body.layers:
            x = layer(x)
        return x
class Freezer:
    def __init__(self, net):
        self.layers = net.children()
    def free(self):
        for each in self.layers:
            each.requires_grad_(True)
layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0)
net = Net(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
Freezer(net).free()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    (net(x) - y).square().mean().backward()
    opt.step()
"""
RIGHT["an attribute of another object"] = NET + OTHERS
RIGHT["an attribute of an argument"] = NET + OTHERS.replace("def forward(self, x):", (
    "def forward(self, x):\n        return self.run(self.body, x)\n    def run(self, body, x):")).replace(
    "in self.body.layers", "in body.layers")  # fmt: skip
READ_OUTSIDE = AVERAGE.replace(
    "        for s, p in zip(self.shadow, self.params):  #!\n            s.lerp_(p, 0.1)\n", "        pass\n"
).replace("    average.update()", "    for p in average.params:  #!\n        p.detach().mul_(0.9)")
WRONG["an attribute of a variable"] = NET + READ_OUTSIDE
CALLING_EACH_OTHER = (
    NET
    + """\
def train(rounds):
    weights = net.parameters()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        (net(x) - y).square().mean().backward()
        print(sum(p.numel() for p in weights), end="")
        opt.step()
    if rounds:
        again(rounds)

def again(rounds):
    train(rounds - 1)

start = train
start(3)
"""
)


def test_functions_that_call_each_other_are_followed_once(tmp_path: Path) -> None:
    sentences(tmp_path, CALLING_EACH_OTHER)


@pytest.mark.parametrize("name", WRONG)
def test_an_iterator_that_is_used_up_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_an_iterator_with_items_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
