"""Checks the sentence about forward hooks that keep an output which the next layer changes in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = nn.BatchNorm1d(outputs)
        self.act = nn.ReLU(inplace=True)
    def forward(self, x):
        return self.act(self.norm(self.linear(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(4, 8), Block(8, 8)])
        self.head = nn.Linear(8, 3)
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
net = Net()
"""
KEEP = """\
class Tap:
    def __init__(self):
        self.kept, self.shapes = [], []
    def keep(self, module, args, output):
        self.kept.append(output)  #!
    def take(self):
        kept, self.kept = self.kept, []
        return kept
tap = Tap()
"""
APPEND = "        self.kept.append(output)  #!\n"
ON_NORMS = "for block in net.blocks:\n    block.norm.register_forward_hook(tap.keep)\n"
TRAIN = """\
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    y = net(torch.randn(16, 4)).logsumexp(1).mean()
    hint = sum(kept.square().mean() for kept in tap.take())
    opt.zero_grad()
    (y + hint).backward()
    opt.step()
"""
FORWARD = NET[NET.index("    def forward(self, x):\n        for") : NET.index("net = Net()")]
PLAIN = NET + KEEP + ON_NORMS + TRAIN


def keep(lines: str) -> str:
    assert APPEND in PLAIN
    return PLAIN.replace(APPEND, lines)


def on(lines: str) -> str:
    return PLAIN.replace(ON_NORMS, lines)


def forward(lines: str) -> str:
    return PLAIN.replace(FORWARD, lines)


SEQUENTIAL = """\
net = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8, 3))
kept = {}
def tap(name):
    def hook(module, inputs, output):
        kept[name] = output  #!
    return hook
net[0].register_forward_hook(tap("first"))
def features(x):
    kept.clear()
    net(x)
    return dict(kept)
head = nn.Linear(2, 1)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(3):
    loss = head(features(torch.randn(16, 1, 4))["first"]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "appended": PLAIN,
    "after another training": PLAIN.replace(ON_NORMS, "").replace(TRAIN, f"""\
def train(net):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(20):
        loss = net(torch.randn(16, 4)).logsumexp(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
train(net)
{ON_NORMS}{TRAIN}"""),
    "a copy of a model": PLAIN.replace("net = Net()\n", "import copy\nnet = copy.deepcopy(Net())\n"),
    "an assignment by another name": keep(
        "        out = output[0] if isinstance(output, tuple) else output\n        self.kept += [out]  #!\n"),
    "a list of the hook itself": PLAIN.replace(APPEND, "        pass\n").replace(
        "tap.keep)", "lambda module, args, output: tap.kept.append(output))  #!"),
    "detached": keep("        self.kept.append(output.detach())  #!\n"),
    "a view by another name": keep("        flat = output.view(-1)\n        self.kept.append(flat)  #!\n"),
    "detached, while the model keeps it, too": keep("        self.kept.append(output.detach())  #!\n").replace(
        "            x = block(x)\n", "            x = block(x)\n            self.seen = x\n"),
    "detached by a hook of the whole layer": keep("        self.kept.append(output.detach())  #!\n").replace(
        "self.norm = nn.BatchNorm1d(outputs)",
        "self.norm = nn.Sequential(nn.BatchNorm1d(outputs), nn.BatchNorm1d(outputs))"),
    "dropout": PLAIN.replace("nn.ReLU(inplace=True)", "nn.Dropout(0.5, inplace=True)"),
    "a function in place": PLAIN.replace("self.act(self.norm(self.linear(x)))",
                                         "nn.functional.relu(self.norm(self.linear(x)), inplace=True)"),
    "a sum": PLAIN.replace("        return self.act(self.norm(self.linear(x)))\n",
                           "        h = self.norm(self.linear(x))\n        h += 1\n        return h\n"),
    "with a name": PLAIN.replace("    def keep(self, module, args, output):\n" + APPEND,
                                 "    def keep(self, module, args, output, name):\n" + APPEND).replace(
        "tap.keep)", "functools.partial(tap.keep, name='norm'))").replace(
        "net = Net()", "import functools\nnet = Net()"),
    "a dict by name": SEQUENTIAL,
    "an attribute": SEQUENTIAL.replace("        kept[name] = output  #!\n", "        net.first = output  #!\n").replace(
        'features(torch.randn(16, 1, 4))["first"]', "(net(torch.randn(16, 1, 4)), net.first)[1]"),
    "a loss module": PLAIN.replace("(kept.square().mean() for kept in", "(hint_of(kept) for kept in")
    .replace("tap = Tap()\n", "tap = Tap()\nclass Hint(nn.Module):\n    def forward(self, kept):\n"
             "        return kept.square().mean()\nhint_of = Hint()\n"),
}  # fmt: skip
TAPPED = ON_NORMS.replace("block.norm", "block.act")
RIGHT = {
    "a copy": keep("        self.kept.append(output.clone())\n"),
    "a detached copy": keep("        self.kept.append(output.detach().clone())\n"),
    "a copy by the same name": keep("        output = output.clone()\n        self.kept.append(output)\n"),
    "computed from it": keep("        self.kept.append(output * 2)\n"),
    "not in place": PLAIN.replace("inplace=True", "inplace=False"),
    "not in place, detached": keep("        self.kept.append(output.detach())\n").replace("inplace=True", ""),
    "of the activation": on(TAPPED),
    "of the activation, detached": on(TAPPED).replace("append(output)", "append(output.detach())"),
    "of the block": on(ON_NORMS.replace("block.norm", "block")),
    "the argument of the next layer": on("net.head.register_forward_hook(tap.keep)\n").replace(
        "append(output)", "append(args[0])"),
    "the argument, by a hook before it": on("net.head.register_forward_pre_hook(tap.keep)\n").replace(
        "args, output):", "args):").replace("append(output)", "append(args[0])"),
    "only shapes": keep("        self.shapes.append(output.shape)\n        self.kept.append(output.mean())\n"),
    "kept, and only its shape is read": PLAIN.replace("kept.square().mean() for", "kept.shape[0] for"),
    "detached, and only its shape is read": keep("        self.kept.append(output.detach())\n").replace(
        "kept.square().mean() for", "torch.zeros_like(kept).sum() for"),
    "read in the hook": keep("        self.kept.append(output.detach().square().mean())\n"),
    "returned detached": keep("        return output.detach()\n"),
    "a running sum in the hook": keep(
        "        if self.kept:\n            self.kept[0].add_(output.detach())\n        else:\n"
        "            self.kept.append(output.detach())\n").replace("inplace=True", ""),
    "by another hook": PLAIN.replace(APPEND, "        self.shapes.append(output)\n        output.square().mean()\n")
    .replace("        return kept\n", "        return [each.square() for each in self.own]\n")
    .replace("tap = Tap()\n", "tap = Tap()\ntap.own = []\n")
    .replace(TRAIN, "net.head.register_forward_hook(lambda m, args, out: tap.own.insert(0, args[0]))\n" + TRAIN)
    .replace("each.square() for each in self.own", "self.own.pop().square()"),
}  # fmt: skip
UNREAD = keep("        self.shapes.append(output)\n")  # the model keeps what is read
OWN = UNREAD.replace("tap.take()", "net.kept")
RIGHT |= {
    "the model's own attribute": OWN.replace(
        "            x = block(x)\n", "            x = block(x)\n        self.kept = [x]\n"),
    "the model's own list": OWN.replace("        for block", "        self.kept = []\n        for block").replace(
        "            x = block(x)\n", "            x = block(x)\n            self.kept.append(x)\n"),
    "the model's own dict": OWN.replace("in net.kept", "in net.kept.values()").replace(
        "        for block", "        self.kept = {}\n        for block").replace(
        "            x = block(x)\n", "            x = block(x)\n            self.kept['last'] = x\n"),
    "two results": UNREAD.replace("return self.head(x)", "return self.head(x), x").replace(
        "    y = net(torch.randn(16, 4))", "    y, kept = net(torch.randn(16, 4))\n    y = y").replace(
        "sum(kept.square().mean() for kept in tap.take())", "kept.square().mean()"),
    "a dict of results": UNREAD.replace("return self.head(x)", "return dict(y=self.head(x), kept=x)").replace(
        "    y = net(torch.randn(16, 4))", "    out = net(torch.randn(16, 4))\n    y = out['y']").replace(
        "sum(kept.square().mean() for kept in tap.take())", "out['kept'].square().mean()"),
    "a result that the model checks": UNREAD.replace(
        "return self.head(x)", "assert torch.isfinite(x.sum())\n        return x").replace(
        "net(torch.randn(16, 4)).logsumexp(1).mean()", "net(torch.randn(16, 4))").replace(
        "sum(kept.square().mean() for kept in tap.take())", "y.square().mean()").replace("(y + hint)", "hint"),
    "parts of the model one after the other": UNREAD.replace(
        "    y = net(torch.randn(16, 4)).logsumexp(1).mean()\n",
        "    x = net.blocks[1](net.blocks[0](torch.randn(16, 4)))\n    y = net.head(x).logsumexp(1).mean()\n").replace(
        "sum(kept.square().mean() for kept in tap.take())", "x.square().mean()"),
    "layers in a loop of the script": UNREAD.replace(
        "    y = net(torch.randn(16, 4)).logsumexp(1).mean()\n", """\
    x, outs = torch.randn(16, 4), []
    for block in net.blocks:
        x = block(x)
        outs.append(x)
    y = net.head(x).logsumexp(1).mean()
""").replace("tap.take()", "outs"),
    "what the script has kept is changed by itself": keep("        self.kept.append(output.detach())\n").replace(
        "inplace=True", "").replace(
        "    hint = ", "    for kept in tap.kept:\n        kept.view(-1).add_(1)\n    hint = "),
    "a residual connection": UNREAD.replace(
        "            x = block(x)\n", "            x = block(x) if block is self.blocks[0] else x + block(x)\n"),
    "a skip to the end": UNREAD.replace(FORWARD, """\
    def forward(self, x):
        first = self.blocks[0](x)
        return self.head(self.blocks[1](first) + first)
"""),
}  # fmt: skip


def found(folder: Path, body: str) -> list[tuple[int, str, list[int]]]:
    return [
        (each.labels[0].span.line, each.text, [label.span.line for label in each.labels])
        for each in sentences(folder, body)
        if "without a copy, and" in each.text
    ]


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_the_line_that_keeps_an_output_is_named_with_the_change_and_the_reader(tmp_path: Path, body: str) -> None:
    ((line, text, labels),) = found(tmp_path, body)
    assert line == marked(body)
    assert "then reads the changed values" in text
    assert len(labels) >= 3


def test_the_sentence_names_the_layer_and_both_lines(tmp_path: Path) -> None:
    ((_, text, labels),) = found(tmp_path, PLAIN)
    assert text == (
        "`self.kept.append(output)` keeps the output of a `BatchNorm1d` without a copy, and "
        "`self.act(self.norm(self.linear(x)))` changes it in place, by `nn.functional.relu()`: `kept.square()` then "
        "reads the changed values"
    )
    lines = PLAIN.splitlines()
    shown = [lines[line - 4].strip() for line in labels]
    assert shown[1] == "return self.act(self.norm(self.linear(x)))"
    assert shown[2].startswith("hint = sum(")
    assert shown[3] == "block.norm.register_forward_hook(tap.keep)"


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_outputs_that_nothing_changes_or_that_the_model_keeps_are_right(tmp_path: Path, body: str) -> None:
    assert not found(tmp_path, body)
