"""Checks the sentence about tensors that a function keeps in a list or dict before a layer changes them in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

LOOP = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleDict({
            "conv1": nn.Conv1d(1, 4, 3), "relu1": nn.ReLU(inplace=True), "pool1": nn.AvgPool1d(2),
            "conv2": nn.Conv1d(4, 8, 3), "relu2": nn.ReLU(inplace=True),
        })
        self.head = nn.Linear(8, 3)
    def features(self, x, taps=()):
        kept = {}
        for name, layer in self.blocks.items():
            x = layer(x)
            if name in taps:
                kept[name] = x  #!
        return x, kept
    def forward(self, x):
        return self.head(self.features(x)[0].mean(2))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
TAPS = ("conv1", "conv2")
for _ in range(3):
    x = torch.randn(8, 1, 16)
    maps = net.features(x, TAPS)[1]
    loss = net(x).logsumexp(1).mean() + sum((m.flatten(1) @ m.flatten(1).t()).square().mean() for m in maps.values())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LINES = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.act = nn.ReLU(inplace=True)
    def forward(self, x):
        feats = []
        h = self.first(x)
        feats.append(h)  #!
        h = self.act(h)
        h = self.second(h)
        return self.head(h), feats
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    y, feats = net(torch.randn(16, 4))
    loss = y.logsumexp(1).mean() + feats[0].square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
UNET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.up = nn.ModuleList(nn.Linear(16, 8) for _ in range(3))
        self.act = nn.LeakyReLU(0.2, inplace=True)
    def forward(self, x):
        skips = []
        for layer in self.down:
            x = layer(x)
            skips.append(x)  #!
            x = self.act(x)
        for layer in self.up:
            x = layer(torch.cat([x, skips.pop()], 1))
        return x
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(16, 8)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
STARTS = "        feats = []\n        h = self.first(x)\n        feats.append(h)  #!"
GRAMS = "sum((m.flatten(1) @ m.flatten(1).t()).square().mean() for m in maps.values())"
SECOND = "        h = self.second(h)\n"
APPEND = "        feats.append(h)  #!\n        h = self.act(h)\n"
SKIP = "            skips.append(x)  #!\n            x = self.act(x)\n"
PRE = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.linear = nn.ReLU(inplace=True), nn.Linear(8, 8)
    def forward(self, x):
        return self.linear(self.act(x))
"""
PLAIN = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
    def forward(self, x):
        return self.linear(x)
"""
POWER = """\
def power(m):
    return m.square().mean()
def penalty(maps):
    return sum(power(m) for m in maps.values())
"""


def other(body: str, old: str, new: str) -> str:
    assert old in body
    return body.replace(old, new)


WRONG = {
    "a dict in a loop": LOOP,
    "a list in a loop": LOOP.replace("kept = {}", "kept = []").replace(
        "kept[name] = x", "kept.append(x)").replace("maps.values()", "maps"),
    "a tensor without a graph": LOOP.replace(
        "sum((m.flatten(1) @ m.flatten(1).t()).square().mean() for m in maps.values())",
        "(net.features(x)[0].mean((1, 2)) - target).square().mean()").replace(
        "    loss =", "    with torch.no_grad():\n        target = net.features(x, TAPS)[1]['conv1'].mean((1, 2))\n"
        "    loss ="),
    "detached": LOOP.replace("kept[name] = x ", "kept[name] = x.detach() ").replace('"conv1", "conv2")', '"conv2",)'),
    "after another training": other(LOOP, "TAPS = ", """\
for _ in range(100):
    loss = net(torch.randn(8, 1, 16)).square().mean()
    loss.backward()
    opt.step()
TAPS = """),
    "lines": LINES,
    "a list that begins with it": other(LINES, STARTS,
                                        "        h = self.first(x)\n        feats = [h]  #!"),
    "by key": other(LINES, "feats = []", "feats = {}").replace("feats.append(h)", "feats['h'] = h").replace(
        "feats[0]", "feats['h']"),
    "dropout": LINES.replace("nn.ReLU(inplace=True)", "nn.Dropout(0.5, inplace=True)"),
    "skips": UNET,
    "other functions read it": POWER + other(LOOP, GRAMS, "penalty(maps)"),
    "blocks that begin with the activation": PRE + other(UNET, SKIP, "            skips.append(x)  #!\n").replace(
        "            x = layer(x)\n            skips.append(x)  #!\n",
        "            skips.append(x)  #!\n            x = layer(x)\n").replace(
        "nn.Linear(8, 8) for", "Block() for").replace("        skips = []\n",
        "        skips = []\n        x = x * 2\n"),
}  # fmt: skip
RIGHT = {
    "a copy": other(LOOP, "kept[name] = x", "kept[name] = x.clone()"),
    "not in place": LOOP.replace("inplace=True", ""),
    "the activations": other(LOOP, '"conv1", "conv2")', '"relu1", "relu2")'),
    "the activations, in a list": other(LOOP, '"conv1", "conv2")', '"relu1", "relu2")').replace(
        "kept = {}", "kept = []").replace("kept[name] = x", "kept.append(x)").replace("maps.values()", "maps"),
    "all, of which the activations are used": other(LOOP, "if name in taps:", "if taps:").replace(
        "maps.values()", "[maps['relu1'], maps['relu2']]"),
    "only shapes": other(LOOP, "(m.flatten(1) @ m.flatten(1).t()).square().mean()", "m.shape[1]"),
    "only how many are zero": other(LOOP, "(m.flatten(1) @ m.flatten(1).t()).square().mean()",
                                    "(m > 0).float().mean().item()"),
    "of both, only the activations are used": other(LOOP, '("conv1", "conv2")', "tuple(net.blocks)").replace(
        "maps.values()", "[maps['relu1'], maps['relu2']]"),
    "activated when they are read": other(LINES, "feats[0].square()", "feats[0].relu().square()"),
    "nothing reads the list": other(LINES, "feats[0].square().mean()", "len(feats)"),
    "a block that the script ran first": PLAIN + other(LINES, "nn.Linear(8, 8)", "Block()").replace(
        "feats[0].square().mean()", "len(feats)").replace("net = Net()", "net = Net()\nnet.second(torch.randn(2, 8))"),
    "nothing reads them": LOOP.replace(
        " + sum((m.flatten(1) @ m.flatten(1).t()).square().mean() for m in maps.values())", ""),
    "kept after the activation": other(LINES, APPEND, "        h = self.act(h)\n        feats.append(h)\n"),
    "returned, too": other(LINES, "        h = self.second(h)\n        return self.head(h), feats",
                           "        return self.head(h), h").replace("feats[0]", "feats"),
    "the line says so": other(LINES, "h = self.act(h)", "nn.functional.relu_(h)"),
    "an option of the line says so": other(LINES, "h = self.act(h)", "nn.functional.relu(h, inplace=True)"),
    "values that the activation leaves": other(LINES, "h = self.first(x)", "h = self.first(x).square()"),
    "dropout in eval mode": LINES.replace("nn.ReLU(inplace=True)", "nn.Dropout(0.5, inplace=True)").replace(
        "net = Net()", "net = Net().eval()"),
    "skips after the activation": other(UNET, SKIP, "            x = self.act(x)\n            skips.append(x)\n"),
    "skips that the next block activates, too": other(UNET, "nn.LeakyReLU(0.2, inplace=True)", "nn.ReLU(inplace=True)")
    .replace("layer(torch.cat([x, skips.pop()], 1))", "layer(self.act(torch.cat([x, skips.pop()], 1)))"),
    "a list of the object, too": other(
        LINES, SECOND, "        self.last = []\n        self.last.append(h)\n" + SECOND)
    .replace("feats[0]", "net.last[0]"),
    "an attribute, too": other(LINES, "        h = self.second(h)\n",
                               "        self.last = h\n        h = self.second(h)\n").replace("feats[0]", "net.last"),
    "dense features": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm1d(4 + 4 * n), nn.ReLU(inplace=True), nn.Linear(4 + 4 * n, 4)) for n in range(3))
    def forward(self, x):
        features = [x * 1]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(16, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a residual block": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(4, 4, 3, padding=1) for _ in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm1d(4) for _ in range(4))
        self.act = nn.ReLU(inplace=True)
    def forward(self, x):
        outs = []
        for conv, norm in zip(self.convs, self.norms):
            identity = x
            out = norm(conv(x))
            out += identity
            x = self.act(out)
            outs.append(x)
        return outs
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = sum(each.square().mean() for each in net(torch.randn(16, 4, 8)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}  # fmt: skip


def found(folder: Path, body: str) -> list[tuple[int, str, list[int]]]:
    return [
        (each.labels[0].span.line, each.text, [label.span.line for label in each.labels])
        for each in sentences(folder, body)
        if "without a copy, and" in each.text
    ]


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_the_line_that_keeps_a_tensor_is_named_with_the_change_and_the_reader(tmp_path: Path, body: str) -> None:
    ((line, text, labels),) = found(tmp_path, body)
    assert line == marked(body)
    assert "then reads the changed values" in text
    assert len(labels) == 3


def test_the_sentence_names_all_three_lines(tmp_path: Path) -> None:
    ((_, text, labels),) = found(tmp_path, LOOP)
    assert text == (
        "`kept[name] = x` keeps `x` without a copy, and `layer(x)` changes it in place, by `nn.functional.relu()`: "
        "`m.flatten(1) @ m.flatten(1).t()` then reads the changed values"
    )
    lines = LOOP.splitlines()
    assert [lines[line - 4].strip()[:9] for line in labels] == ["kept[name", "x = layer", "loss = ne"]


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_results_that_nothing_changes_or_that_are_kept_afterwards_are_right(tmp_path: Path, body: str) -> None:
    assert not found(tmp_path, body)
