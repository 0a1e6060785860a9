"""Checks the sentences about losses of which only the last is used, terms that nothing reads, and modules that are
kept without a copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.diagnostics import report_on

RNN = """\
import torch.nn.functional as F
cell, out = nn.GRUCell(1, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.01)
series = torch.randn(6, 16, 1)
for _ in range(4):
    h, total = torch.zeros(16, 8), 0.0
    for t in range(5):
        h = cell(series[t], h)
        loss = F.mse_loss(out(h), series[t + 1])  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
GATE = """\
import torch.nn.functional as F
class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.parts = nn.Linear(4, 2), nn.Linear(4, 2)
    def forward(self, x):
        weights = self.gate(x).softmax(1)
        self.balance = (weights.mean(0) ** 2).sum()  #!
        return (weights * self.parts(x)).sum(1)
net = Gated()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8)
for _ in range(4):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TERMS = """\
from dataclasses import dataclass
@dataclass
class Terms:
    fit: torch.Tensor
    kl: torch.Tensor
enc, dec = nn.Linear(4, 4), nn.Linear(2, 4)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.01)
x = torch.randn(8, 4)
for _ in range(4):
    mean, spread = enc(x).chunk(2, dim=1)
    fit = (dec(mean + spread.exp() * torch.randn(8, 2)) - x).square().mean()
    kl = (mean.square() + spread.exp() - spread).mean()  #!
    terms = Terms(fit, kl)
    loss = 2 * terms.fit
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a field that no line reads": (TERMS, "has a graph to `enc.weight` and `enc.bias`, and no line reads any of its 4"),
    "an item that no line reads": (
        TERMS.replace("Terms(fit, kl)", "{'fit': fit, 'kl': kl}").replace("terms.fit", "terms['fit']"),
        "has a graph to `enc.weight` and `enc.bias`, and no line reads any of its 4",
    ),
    "a field of what helpers get": (
        TERMS.replace("for _", "def total(terms, scale=2):\n    return scale * terms.fit\nfor _").replace(
            "2 * terms.fit", "total(terms)"
        ),
        "has a graph to `enc.weight` and `enc.bias`, and no line reads any of its 4",
    ),
    "the last loss of a loop": (RNN, "computes 5 losses or more before each of 4 backward passes, and each pass uses"),
    "the others are printed": (RNN.replace("  #!", "; total += loss.item()  #!"), "uses only the last of them"),
    "the last loss of several batches": (
        RNN.replace("h = cell(series[t], h)", "h = cell(series[t], torch.zeros(16, 8))"),
        "computes 5 losses or more",
    ),
    "a term that no loss has": (
        GATE,
        "has a graph to `net.gate.weight` and `net.gate.bias`, and no line reads any of its 4 results",
    ),
}
RIGHT = {
    "the loss of the best head": RNN.replace("h, total = torch.zeros(16, 8), 0.0", (
        "h, losses = torch.zeros(16, 8), []")).replace("loss = F", "losses.append(F").replace(
        "[t + 1])", "[t + 1]))").replace("    opt.zero", (
        "    loss = min(losses, key=lambda each: each.item())\n    opt.zero")),
    "the greatest loss, which is the last": RNN.replace("total = torch.zeros(16, 8), 0.0", (
        "worst = torch.zeros(16, 8), torch.zeros(())")).replace("[t + 1])", "[t + 1]) * (t + 1) ** 4").replace("  #!", (
        "\n        worst = loss if loss.item() > worst.item() else worst")).replace("loss.backward", "worst.backward"),
    "losses of other data by the same line": RNN.replace("for t in range(5):\n        h =", (
        "for t in range(3):\n        h =")).replace("    h, total", (
        "    held = [evaluate(t).item() for t in (3, 4)]\n    h, total")).replace("F.mse_loss(out(h), series[t + 1])", (
        "evaluate(t, h)")).replace("for t in range(3)", "for t in range(1)").replace("for _ in", (
        "def evaluate(t, h=torch.zeros(16, 8)):\n    return F.mse_loss(out(cell(series[t], h)), series[t + 1])\n"
        "for _ in")).replace("    opt.step()", "    opt.step()\n    print(loss.item())"),
    "a transform of the same line": """\
w = nn.Parameter(torch.ones(3))
def bend(scale):
    return (scale * w).square().sum()
for _ in range(4):
    curve = torch.func.vmap(bend)(torch.linspace(0, 1, 5))
    slope = torch.func.grad(bend)(torch.tensor(1.0))
    curve.mean().backward()
""",
    "all losses": RNN.replace("loss = F", "total = total + F").replace("loss.backward", "total.backward"),
    "a pass for each loss": RNN.replace("    opt.zero", "        opt.zero").replace(
        "    loss.backward()", "        loss.backward(retain_graph=True)"
    ),
    "an evaluation with a graph": RNN.replace("    for t in range(5):\n", "    for t in range(1):\n")
    + "    print(F.mse_loss(out(h), series[5]))\n",
    "a term of the loss": GATE.replace("(net(x), y)", "(net(x), y) + net.balance"),
    "a term that is shown": GATE + "    print(f'{net.balance:.3f}')\n",
    "a field of the loss": TERMS.replace("2 * terms.fit", "terms.fit + 0.1 * terms.kl"),
    "all fields at once": TERMS.replace("2 * terms.fit", "sum(vars(terms).values()) + terms.fit"),
    "a field that is shown": TERMS.replace("    opt.zero", "    print(terms)\n    opt.zero"),
    "all parts in a text": TERMS.replace("Terms(fit, kl)", "{'fit': fit, 'kl': kl}").replace(
        "terms.fit", "terms['fit']") + "    print(f'step {_}: {terms}')\n",
    "parts that are kept": TERMS.replace("x =", "kept = {}\nx =").replace("    opt.zero", (
        "    kept[_] = terms\n    opt.zero"))
    + "torch.save(kept[0].fit.item(), '/dev/null')\n",
    "parts that another module shows": TERMS.replace("from dataclasses", "from pprint import pformat\nfrom dataclasses")
    + "text = pformat(terms)\n",
    "a number beside the loss": TERMS.replace("kl:", "error:").replace("kl = ", "error = ").replace(
        "fit, kl)", "fit, error)"),
    "the state after the last round": RNN.replace("    h, total", "    y = torch.randn(16, 1)\n    h, total").replace(
        "series[t + 1]", "y"),
    "the state after the last round, and a part of the data": RNN.replace("series[t + 1]", "series[-1]"),
    "a fixed point": RNN.replace("F.mse_loss(out(h), series[t + 1])", "out(h).square().mean()"),
    "a run before the first step": GATE.replace("for _", "for _ in range(3):\n    _ = F.mse_loss(net(x), y)\nfor _", 1)
    .replace("self.balance = (weights.mean(0) ** 2).sum()", "pass"),
    "numbers to look at": GATE.replace("self.balance = (weights.mean(0) ** 2).sum()", (
        "self.last_entropy = -(weights * weights.log()).sum(1).mean()\n        self.load = weights.mean(0).max()")),
    "a term without a graph": GATE.replace(".sum()  #!", ".sum().detach()"),
}  # fmt: skip
WORDS = ("uses only the last", "no loss contains")


@pytest.mark.parametrize("name", WRONG)
def test_losses_that_no_pass_uses_are_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_losses_that_are_used_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []


# --- parts that nothing reads ----------------------------------------------------------------------------------------

PARTS = """\
enc, dec = nn.Linear(4, 4), nn.Linear(2, 4)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
x = torch.randn(8, 4)
for _ in range(3):
    mean, spread = enc(x).chunk(2, dim=1)  #!
    z = mean + torch.randn(8, 2) * USED
    opt.zero_grad()
    (dec(z) - x).square().mean().backward()
    opt.step()
"""


def test_a_part_that_no_line_reads_is_named(tmp_path: Path) -> None:
    body = PARTS.replace("USED", "mean.exp()")
    (found,) = (each for each in sentences(tmp_path, body) if "no line reads the" in each.text)
    assert found.text.startswith("`enc(x).chunk(2, dim=1)` makes 2 parts of what is computed from `enc.weight`")
    assert "no line reads the 2nd one in any of its 3 runs" in found.text
    assert found.labels[0].span.line == marked(body)


def test_parts_that_are_all_read_are_left_alone(tmp_path: Path) -> None:
    body = PARTS.replace("USED", "spread.exp()")
    assert [each.text for each in sentences(tmp_path, body) if "no line reads the" in each.text] == []


HALVES = """\
enc, dec = nn.Linear(4, 4), nn.Linear(2, 4)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
x = torch.randn(8, 4)
for _ in range(3):
    h = enc(x)
    PARTS
    opt.zero_grad()
    (dec(value * torch.sigmoid(USED)) - x).square().mean().backward()
    opt.step()
"""
FORMS = (
    "value, gate = h.unflatten(1, (2, 2)).unbind(1)  #!",
    "value, gate = h.view(8, 2, 2).movedim(1, 0)  #!",
    "value, gate = h[:, :2], h[:, 2:]  #!",
    "value = h.narrow(1, 0, 2)\n    gate = h.narrow(1, 2, 2)  #!",
)


@pytest.mark.parametrize("parts", FORMS)
def test_parts_of_other_calls_that_no_line_reads_are_named(tmp_path: Path, parts: str) -> None:
    body = HALVES.replace("PARTS", parts).replace("USED", "value")
    (found,) = (each for each in sentences(tmp_path, body) if "no line reads" in each.text)
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize(
    "parts",
    [
        FORMS[0].replace("value,", "gate,").replace(", gate", ", _"),  # given up on purpose
        "gate = h.view(8, 2, 2).unbind(1)[-1]",
        "value, gate = h[:, :2], h[:, 2:]\n    value = h[:, 1:3]",
        "value, gate = nn.GRU(4, 2, 2)(x[None])[1].sum(1).unbind(0)",
        FORMS[2],
    ],
)
def test_parts_that_are_read_or_given_up_are_left_alone(tmp_path: Path, parts: str) -> None:
    body = HALVES.replace("PARTS", parts).replace("value * torch.sigmoid(USED)", "gate + h[:, :2]")
    assert [each.text for each in sentences(tmp_path, body) if "no line reads" in each.text] == []


GIVEN_UP = {  # parts that other rows have read, or that the program does not need
    "a domain in the statistics": (
        "nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))",
        "source, target = net(torch.cat([x, x + 1])).chunk(2)\n    out = source",
    ),
    "patches": (
        "nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)",
        "h = net(x.expand(5, 8, 4).transpose(0, 1))\n    first, patches = h[:, 0], h[:, 1:]\n    out = first",
    ),
    "registers": (
        "nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)",
        "h = net(x[:, None].expand(8, 5, 4))\n    a, reg, b = h.split([1, 2, 2], 1)\n    out = a[:, 0] + b.mean(1)",
    ),
    "a learned variance": (
        "nn.Conv1d(1, 2, 3, padding=1)", "out, _ = torch.chunk(net(x[:, None]), 2, dim=1)\n    out = out.squeeze(1)",
    ),
    "the mean of a policy": ("nn.Linear(4, 8)", "mean, log_std = net(x).chunk(2, dim=-1)\n    out = mean.tanh()"),
    "an index": ("nn.Linear(4, 8)", "out = net(x).chunk(2, dim=-1)[0]"),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN_UP)
def test_a_part_that_is_not_needed_is_left_alone(tmp_path: Path, name: str) -> None:
    layer, lines = GIVEN_UP[name]
    body = f"""\
net, x, y = {layer}, torch.randn(8, 4), torch.randn(8, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    {lines}
    opt.zero_grad()
    (out - y).square().mean().backward()
    opt.step()
"""
    assert [each.text for each in sentences(tmp_path, body) if "no line reads" in each.text] == []


SHOWN = {  # where the source reads a part that no recorded call reads
    "a file": "    torch.save(spread, io.BytesIO())\n",
    "shown": "    print(spread)\n",
    "shown in a text": "    print(f'{spread}')\n",
    "kept in a list of a function": "    keep(spread)\n",
    "kept in a dict that goes to a file": "    kept[step] = spread\n    torch.save(kept, io.BytesIO())\n",
    "an attribute that is shown": "    enc.spread = spread\n    print(repr(enc.spread))\n",
}
KEEP = "import io\nkept, seen, step = {}, [], 0\ndef keep(value):\n    seen.append(value)\n"
ENCODER = """\
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def encode(self, x):
        mean, spread = self.layer(x).chunk(2, dim=1)
        return mean, spread

enc, dec = Encoder(), nn.Linear(2, 4)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
x = torch.randn(8, 4)
for _ in range(3):
    mean, spread = enc.encode(x)
    opt.zero_grad()
    (dec(mean) - x).square().mean().backward()
    opt.step()
"""


@pytest.mark.parametrize("name", SHOWN)
def test_a_part_that_is_read_without_a_call_is_left_alone(tmp_path: Path, name: str) -> None:
    body = KEEP + PARTS.replace("USED", "0.1").replace("    z =", SHOWN[name] + "    z =")
    if name.startswith("kept in a list"):
        body += "print(len(seen), seen)\n"
    assert [each.text for each in sentences(tmp_path, body) if "no line reads" in each.text] == []


def test_a_part_that_a_function_returns_is_left_alone(tmp_path: Path) -> None:
    assert [each.text for each in sentences(tmp_path, ENCODER) if "no line reads" in each.text] == []


@pytest.mark.parametrize("line", ["    kept[step] = spread\n", "    enc.spread = spread\n", "    ignore(spread)\n"])
def test_a_part_that_is_only_passed_on_is_named(tmp_path: Path, line: str) -> None:
    ignore = "kept, step = {}, 0\ndef ignore(value):\n    return None\n"
    body = ignore + PARTS.replace("USED", "0.1").replace("    z =", line + "    z =")
    (found,) = (each for each in sentences(tmp_path, body) if "no line reads the" in each.text)
    assert found.labels[0].span.line == marked(body)


# --- modules that are kept -------------------------------------------------------------------------------------------

FIT = """\
import copy
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randn(8, 1)
def step(net, opt):
    opt.zero_grad()
    loss = (net(x) - y).square().mean()
    loss.backward()
    opt.step()
    return loss.item()
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
best, low = None, 1e9
for _ in range(4):
    loss = step(net, opt)
    if loss < low:
        low = loss
        best = net
print(best(x).mean())
"""
CLASS = """\
import copy
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randn(8, 1)
class Trainer:
    def __init__(self):
        self.net, self.best, self.low = nn.Linear(4, 1), None, 1e9
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
    def fit(self):
        for _ in range(4):
            self.opt.zero_grad()
            loss = (self.net(x) - y).square().mean()
            loss.backward()
            self.opt.step()
            if loss.item() < self.low:
                self.low, self.best = loss.item(), self.net
trainer = Trainer()
trainer.fit()
"""
METHOD = CLASS.replace(CLASS[CLASS.index("            if loss") : CLASS.index("trainer =")], (
    "            self.consider(loss.item())\n    def consider(self, value):\n        if value < self.low:\n"
    "            self.low, self.best = value, self.net\n"))  # fmt: skip
RECORD = METHOD.replace("class Trainer", (
    "from dataclasses import dataclass, replace\n@dataclass(frozen=True)\nclass Record:\n    low: float = 1e9\n"
    "    net: nn.Module = None\nclass Trainer")).replace("None, 1e9", "Record(), 1e9").replace(
    "value < self.low", "value < self.best.low").replace(
    "self.low, self.best = value, self.net", "self.best = replace(self.best, low=value, net=self.net)")  # fmt: skip
KEPT = {
    "a name": (FIT, "`best = net` keeps no copy: `best` and `net` are one module, and later steps change it"),
    "an attribute": (CLASS, "keeps no copy: `self.best` and `self.net` are one module"),
    "a method that a loop calls": (METHOD, "keeps no copy: `self.best` and `self.net` are one module"),
    "a part of a record": (RECORD, "keeps no copy: `self.best.net` and `self.net` are one module"),
    "an item of a dict": (
        FIT.replace("best = net", "best = dict(low=low, net=net)").replace("best(x)", "best['net'](x)"),
        "keeps no copy: `best['net']` and `net` are one module",
    ),
    "a tuple": (
        METHOD.replace("self.low, self.best = value, self.net", "self.low = value; self.best = (value, self.net)"),
        "keeps no copy: `self.best[1]` and `self.net` are one module",
    ),
    "a key": (
        METHOD.replace("None, 1e9", "{}, 1e9").replace("self.low, self.best = value, self.net", (
            "self.low, self.best['net'] = value, self.net")),
        "keeps no copy: `self.best['net']` and `self.net` are one module",
    ),
}  # fmt: skip
KEPT["a variable that is read before"] = (
    METHOD.replace("        if value", "        best = self.best\n        if value").replace(
        "self.low, self.best = value, self.net\n",
        "self.low, best = value, self.net\n            self.best = self.net\n",
    ),
    "keeps no copy: `self.best` and `self.net` are one module",
)
KEPT["the count of a stop begins again"] = (
    METHOD.replace("None, 1e9", "None, 1e9; self.bad = 0")
    .replace("            self.consider(loss.item())", "            if self.consider(loss.item()): break")
    .replace(
        "= value, self.net\n",
        "= value, self.net\n            self.bad = 0\n        else:\n            self.bad += 1\n"
        "        return self.bad > 3\n",
    ),
    "keeps no copy: `self.best` and `self.net` are one module",
)
RETURNED = """\
from dataclasses import dataclass, replace
@dataclass(frozen=True)
class Best:
    low: float = 1e9
    net: nn.Module = None
    def after(self, low, net):
        if low < self.low:
            return replace(self, low=low, net=net)
        return self
net"""
BETTER = FIT.replace("\nnet", f"\n{RETURNED}", 1).replace("best, low = None, 1e9", "best = Best()").replace(
    "    if loss < low:\n        low = loss\n        best = net", "    best = best.after(loss, net)"
).replace("best(x)", "best.net(x)")  # fmt: skip
KEPT |= {
    "a record that a method returns": (BETTER, "net=net)` keeps no copy: `best.net` and `net` are one module"),
    "a choice in one line": (
        BETTER.replace("best.after(loss, net)", "Best(loss, net) if loss < best.low else best"),
        "`best.net` and `net` are one module",
    ),
    "the least of two records": (
        BETTER.replace("best.after(loss, net)", "min(best, (loss, net), key=lambda each: each[0])")
        .replace("best = Best()", "best = (1e9, None)").replace("best.net(x)", "best[1](x)"),
        "`best[1]` and `net` are one module",
    ),
    "a function that returns a choice": (
        BETTER.replace("best.after(loss, net)", "better(best, (loss), net)").replace("best = Best()", (
        "def better(old, value, new):\n    return Best(value, new) if old.low > value else old\nbest = Best()")),
        "`best.net` and `net` are one module",
    ),
}  # fmt: skip
COPIED = {
    "a record of a copy": BETTER.replace("net=net)", "net=copy.deepcopy(net))"),
    "a record with weights": BETTER.replace("net=net)", "net=(net, copy.deepcopy(net.state_dict())))").replace(
        "best.net(x)", "best.net[0](x)"),
    "a record that ends the loop": BETTER.replace("(loss, net)", "(loss, net)\n    if best.low < 0.5: break"),
    "a record of several": BETTER.replace("for _ in range(4):\n", (
        "for rate in (0.3, 0.01):\n    net = nn.Linear(4, 1)\n    opt = torch.optim.SGD(net.parameters(), lr=rate)\n")),
    "a record by a count": BETTER.replace("after(loss, net)", "after(-_, net)"),
    "the loop ends there": FIT.replace("best = net\n", "best = net\n        break\n"),
    "the caller ends its loop": METHOD.replace(
        "            self.consider(loss.item())", "            if self.consider(loss.item()): break").replace(
        "= value, self.net\n", "= value, self.net\n        return self.best is not None\n"),
    "blocks that become active": FIT.replace("best, low", "best, low, live").replace("None, 1e9", "net, 1e9, []")
    .replace("if loss < low:\n        low = loss\n        best = net", "if len(live) < 2:\n        live.append(net)"),
    "turns": METHOD.replace("consider(loss.item())", "consider(_)").replace(
        "value < self.low", "value >= self.low").replace(
        "self.best = value", "self.best = value + 2").replace("1e9", "0"),
    "one of two": FIT.replace("best = net\n", "best = net\n    else:\n        best = opt\n").replace("best(x)", "x"),
    "one of two, the first before": FIT.replace("    if loss < low", "    best = opt\n    if loss < low").replace(
        "best(x)", "x"),
    "the largest size": METHOD.replace("consider(loss.item())", "consider(_)"),
    "a copy": FIT.replace("best = net", "best = copy.deepcopy(net)"),
    "a copy as an attribute": CLASS.replace(", self.net\n", ", copy.deepcopy(self.net)\n"),
    "a copy in a record": RECORD.replace("net=self.net)", "net=copy.deepcopy(self.net))"),
    "a record beside a copy": RECORD.replace("net=self.net)", (
        "net=self.net); self.kept = copy.deepcopy(self.net.state_dict())")),
    "the best of several": FIT.replace("for _ in range(4):\n", (
        "for rate in (0.3, 0.2, 0.1, 0.01):\n    torch.manual_seed(0)\n    net = nn.Linear(4, 1)\n"
        "    opt = torch.optim.SGD(net.parameters(), lr=rate)\n    [step(net, opt) for _ in range(3)]\n")).replace(
        "if loss < low", "if -loss < low"),
    "the best of several, in a method": METHOD.replace("            self.opt.zero_grad()", (
        "            self.consider(-_)\n            self.opt.zero_grad()")).replace(
        "            self.consider(loss.item())\n", "").replace("def consider(self, value):", (
        "def consider(self, value):\n        self.net = nn.Linear(4, 1)\n"
        "        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)")),
    "a method that is called once": METHOD.replace("            self.consider(loss.item())", (
        "        self.consider(loss.item())")),
    "the best of several, made by another method": METHOD.replace("    def consider", (
        "    def begin(self):\n        self.net = nn.Linear(4, 1)\n"
        "        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)\n    def consider")).replace(
        "            self.opt.zero_grad()", "            self.begin()"),
    "a choice by a number": METHOD.replace("value < self.low", "len(x) > 1").replace("self.low, self.best = value, ", (
        "self.best = ")),
    "a new name outside of a choice": FIT.replace(
        "    if loss < low:\n        low = loss\n        best = net", "    best = net"
    ),
}  # fmt: skip

SEARCH = """\
from dataclasses import dataclass
@dataclass
class Best:
    low: float
    heat: float
    net: nn.Module
net"""
AFTER = FIT.replace("\nnet", f"\n{SEARCH}", 1).replace("best, low = None, 1e9\n", "").replace("best(x)", "best.net(x)")
AFTER = AFTER.replace(
    "    if loss < low:\n        low = loss\n        best = net",
    """\
best = Best(1e9, 1.0, net)
for heat in (2.0, 1.0, 0.5, 0.2):
    score = (net(x) / heat - y).square().mean().item()
    best = Best(score, heat, net) if score < best.low else best""",
)
INNER = AFTER.replace("\nfor heat", "\n    for heat").replace("\n    score", "\n        score")
INNER = INNER.replace("\n    best = Best(score", "\n        best = Best(score")
EPOCHS = INNER.replace("\nbest = Best(1e9, 1.0, net)", "").replace("for _ in", "best = Best(1e9, 1.0, net)\nfor _ in")
CHOSEN = AFTER.replace("best = Best(1e9, 1.0, net)", "best, low = None, 1e9").replace(
    "    best = Best(score, heat, net) if score < best.low else best",
    "    if score < low:\n        low, best = score, (heat, net)",
).replace("best.net(x)", "best[1](x)")  # fmt: skip
STATES = EPOCHS.replace("    for heat in (2.0, 1.0, 0.5, 0.2):\n    ", "    heat = {}\n").replace(
    "\n        best", "\n    best"
)
STATES = STATES.replace(" / heat", "")
KEPT["a search in each round"] = (EPOCHS, "`best.net` and `net` are one module")
COPIED |= {
    "a search after the training": AFTER,
    "a search in each round, begun anew": INNER.replace("\nbest = Best(1", "\n    best = Best(1"),
    "an if of a search after the training": CHOSEN,
    "the best of several, by two parts": EPOCHS.replace("    loss = step(net, opt)\n", (
        "    net = nn.Linear(4, 1)\n    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "    for _ in range(3): step(net, opt)\n")),
    "a record beside a copy on its own line": STATES.format("{k: v.clone() for k, v in net.state_dict().items()}"),
    "a record beside the copy of a function": STATES.format("frozen(net)").replace(
        "best = Best(1", "def frozen(net):\n    return copy.deepcopy(net.state_dict())\nbest = Best(1"),
}  # fmt: skip

SHORT = """\
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randn(8, 1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 1)
    def forward(self, x):
        part = self.head
        return part(x)
net, low = Net(), 1e9
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = (net(x) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if _ % 2:
        part = net.head
        print(part.bias.mean())
print(net(x).mean())
"""
KEPT |= {
    "a name for later rounds": (
        SHORT.replace("if _ % 2:", "if _ == 1:").replace("    print(part", "print(part").replace("for _", (
        "part = net.head\nfor _")), "`part` and `net.head` are one module"),
    "a name for after the loop": (
        SHORT.replace("        print(part.bias.mean())\n", "").replace("print(net(x)", "print(part(x)"),
        "`part` and `net.head` are one module"),
    "a name that a collection gets": (
        SHORT.replace("print(part.bias.mean())", "print(part.bias.mean())\n        parts = [part]"),
        "`part` and `net.head` are one module"),
}  # fmt: skip
COPIED |= {
    "a short name": SHORT,
    "a short name that a function gets": SHORT.replace("print(part.bias.mean())", "size = len(str(part))"),
    "a short name in a loop below": SHORT.replace("print(part.bias.mean())", (
        "for p in part.parameters():\n            print(p.norm())")),
    "a short name that a loop has, too": SHORT + "for part in net.children():\n    print(part)\n",
    "a short name that another line sets, too": SHORT + "part = net\nprint(part(x).mean())\n",
    "a short name below the best": SHORT.replace("if _ % 2:", "if loss.item() < low:\n        low = loss.item()"),
}  # fmt: skip


def said(warm: Warm, folder: Path, text: str) -> list[str]:
    script = folder / "script.py"
    script.write_text(text)
    report = report_on(WarmRuns(warm, script, training=True).first().trace())
    return [each.text for each in report.standing_out or () if "keeps no copy" in each.text]


@pytest.mark.parametrize("name", KEPT)
def test_a_module_that_is_kept_without_a_copy_is_named(warm: Warm, tmp_path: Path, name: str) -> None:
    body, text = KEPT[name]
    (found,) = said(warm, tmp_path, body)
    assert text in found


@pytest.mark.parametrize("name", COPIED)
def test_copies_of_modules_are_left_alone(warm: Warm, tmp_path: Path, name: str) -> None:
    assert said(warm, tmp_path, COPIED[name]) == []
