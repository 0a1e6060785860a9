"""Checks the sentence about evaluations that return the value of the last batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

LOADED = """\
from torch.utils.data import DataLoader, TensorDataset
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
data = TensorDataset(torch.randn(24, 3), torch.randn(24, 1))
loader = DataLoader(data, batch_size=8)
@torch.no_grad()
def evaluate(batches):
    total, values = 0.0, []
    for x, y in batches:
        out = net(x)
        loss = (out - y).pow(2).mean()
    return loss.item()  #!
for _ in range(3):
    for x, y in loader:
        loss = (net(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    evaluate(loader)
"""
LOSS = "        loss = (out - y).pow(2).mean()\n    return"
METER = """\
class Mean:
    total = count = 0
    def add(self, value):
        self.total, self.count = self.total + float(value), self.count + 1
        return self.total / self.count
meter = Mean()
"""
VALUE = "        loss = (out - y).pow(2).mean()\n    return loss.item()"
PRINTED = """\
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
x, y = torch.randn(24, 3), torch.randn(24, 1)
for epoch in range(3):
    for a, b in zip(x.split(8), y.split(8)):
        loss = (net(a) - b).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        for a, b in zip(x.split(8), y.split(8)):
            loss = (net(a) - b).pow(2).mean()
    print(f"loss {loss.item():.3f}")  #!
"""
WRONG = {
    "printed": PRINTED,
    "a dict": LOADED.replace(VALUE, (
        "        report['mse'] = (out - y).pow(2).mean().item()\n    return report")).replace(
        "total, values = 0.0, []", "report = {}"),
    "an update": LOADED.replace(VALUE, (
        "        report.update(mae=(out - y).abs().mean().item(), mse=(out - y).pow(2).mean().item())\n"
        "    return report")).replace("total, values = 0.0, []", "report = {}"),
    "a helper and a tuple": "def error(out, y):\n    return (out - y).pow(2).mean().item()\n" + LOADED.replace(VALUE, (
        "        loss, size = error(out, y), len(x)\n    return loss")),
    "an attribute and a dict as batch": LOADED.replace("for x, y in batches:", (
        "for b in ({'x': x, 'y': y} for x, y in batches):")).replace("out = net(x)", (
        "out, y = net(b['x']), b['y']")).replace("loss = (out - y).pow(2).mean()\n    return loss.item()", (
        "net.loss = (out - y).pow(2).mean().item()\n    return net.loss")),
    "a share": LOADED.replace(".pow(2).mean()\n    return loss.item()", (
        ".pow(2).mean().cpu().item() / len(x)\n    return loss")),
    "a loader": LOADED,
    "a count": LOADED.replace("for x, y in batches", "for i, (x, y) in enumerate(batches)"),
    "a number": LOADED.replace(".pow(2).mean()\n    return loss.item()", ".pow(2).mean().item()\n    return loss"),
    "slices": LOADED.replace("for x, y in batches:", (
        "for i in range(0, 24, 8):\n        x, y = (each[i : i + 8] for each in data.tensors)")),
}  # fmt: skip
RIGHT = {
    "the last training batch": PRINTED.replace("with torch.no_grad():", "if True:"),
    "the last batch by name": PRINTED.replace("loss {", "last batch {"),
    "printed in each round": PRINTED.replace('    print(', '            print(').replace("  #!", ""),
    "a meter with an update": METER.replace("def add", "def update") + LOADED.replace(VALUE, (
        "        meter.update((out - y).pow(2).mean().item())\n    return meter.total")),
    "an item that the round adds to": LOADED.replace(VALUE, (
        "        report['mse'] = report['mse'] + (out - y).pow(2).mean().item()\n    return report")).replace(
        "total, values = 0.0, []", "report = {'mse': 0}"),
    "a sum": LOADED.replace("return loss.item()", "return total").replace("    return", (
        "        total += loss.item()\n    return")),
    "a running mean": METER + LOADED.replace("loss = (out - y).pow(2).mean()\n    return loss.item()", (
        "loss = meter.add((out - y).pow(2).mean())\n    return loss")),
    "a running mean in a sum": METER + LOADED.replace("loss = (out - y).pow(2).mean()\n    return loss.item()", (
        "loss = (out - y).mean() * 0 + meter.add(out[0, 0])\n    return loss")),
    "a running mean that update returns": METER.replace("float(value)", "value").replace("add", "update") + (
        LOADED.replace("loss = (out - y).pow(2).mean()\n    return loss.item()", (
        "loss = meter.update((out - y).pow(2).mean())\n    return loss"))),
    "a root of a running mean": METER.replace("float(value)", "value") + (
        LOADED.replace("loss = (out - y).pow(2).mean()\n    return loss.item()", (
        "mean = meter.add((out - y).pow(2).mean())\n        loss = mean.sqrt()\n    return loss"))),
    "a root of a running mean by a call": METER.replace("float(value)", "value").replace("add", "__call__") + (
        LOADED.replace("loss = (out - y).pow(2).mean()\n    return loss.item()", (
        "mean = meter((out - y).pow(2).mean())\n        loss = mean.sqrt()\n    return loss"))),
    "a list": LOADED.replace(LOSS, (
        "        values.append(out - y)\n        loss = torch.cat(values).pow(2).mean()\n    return")),
    "a mean so far": LOADED.replace(LOSS, (
        "        total += (out - y).pow(2).mean()\n        loss = total / 3\n    return")),
    "one batch in each loader": LOADED.replace("    evaluate(loader)", (
        "    for part in [[each] for each in loader]:\n        evaluate(part)")),
    "the first batch": LOADED.replace("mean()\n    return", "mean()\n        break\n    return"),
    "the loss of training": LOADED.replace("@torch.no_grad()\n", ""),
    "steps of a state": LOADED.replace("for x, y in batches:\n        out = net(x)", (
        "out, (x, y) = torch.zeros(8, 1), next(iter(batches))\n    for _, _ in batches:\n"
        "        out = out + 0.1 * net(x)")),
}  # fmt: skip
WORDS = "of the last round only"


@pytest.mark.parametrize("name", WRONG)
def test_the_value_of_the_last_batch_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "each of 3 rounds" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_other_values_are_left_alone(tmp_path: Path, name: str) -> None:
    assert not [each for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text]
