"""Checks the sentences about states that a loop detaches, nearest entries of a table, and unfrozen parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

STEP = "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
LOOP = """\
cell, head = nn.GRUCell(3, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    x, y = torch.randn(6, 4, 3), torch.randn(6, 4, 1)
    h, loss = torch.zeros(4, 8), 0
    for t in range(6):
        h = cell(x[t], h.detach())  #!
        loss = loss + (head(h) - y[t]).square().mean()
"""
BEGIN = "    h, loss = torch.zeros(4, 8), 0\n"
FEEDBACK = LOOP.replace(BEGIN, BEGIN + "    out = torch.zeros(4, 1)\n")
SECOND = (
    LOOP.replace("cell, head = nn.GRUCell(3, 8),", "cell, other, head = nn.GRUCell(11, 8), nn.GRUCell(3, 8),")
    .replace(BEGIN, BEGIN + "    c = torch.zeros(4, 8)\n")
    .replace("h = cell(x[t], h.detach())  #!", "c = other(x[t], c); h = cell(torch.cat([x[t], c], 1), h.detach())")
)
TABLE = """\
encoder, decoder = nn.Linear(6, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 6))
codes = nn.Parameter(torch.randn(5, 4))
opt = torch.optim.SGD([*encoder.parameters(), *decoder.parameters(), codes], lr=0.1)
for _ in range(3):
    x = torch.randn(16, 6)
    z = encoder(x)
    index = torch.cdist(z, codes).argmin(1)
    q = codes[index]  #!
    extra = (q - z.detach()).square().mean() + 0.25 * (z - q.detach()).square().mean()
    loss = (decoder(q) - x).square().mean() + extra
"""
SIGN = (
    """\
encoder, decoder = nn.Linear(6, 4), nn.Linear(4, 6)
opt = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
def join(value, slope):
    return slope + (value - slope).detach()
for _ in range(3):
    x = torch.randn(16, 6)
    z = encoder(x).tanh()
    hard = z.sign()
    bits = join(hard, z)
    loss = (decoder(bits) - x).square().mean()
"""
    + STEP
)
FROZEN = """\
body, head = nn.Linear(4, 4), nn.Linear(4, 1)
f = lambda: head(body(torch.randn(8, 4))).square().mean()
def train(opt):
    for _ in range(3):
        opt.zero_grad()
        f().backward()
        opt.step()
train(torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1))
body.requires_grad_(False)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
train(opt)
body.requires_grad_(True)  #!
train(opt)
"""
LAYERS = """\
layers, heads = nn.ModuleList(nn.Linear(4, 4) for _ in range(4)), nn.ModuleList(nn.Linear(4, 2) for _ in range(4))
opt = torch.optim.SGD([*layers.parameters(), *heads.parameters()], lr=0.1)
for _ in range(3):
    x, y, loss = torch.randn(8, 4), torch.randint(0, 2, (8,)), 0
    for layer, head in zip(layers, heads):
        x = torch.relu(layer(x))
        loss = loss + nn.functional.cross_entropy(head(x), y)
        x = x.detach()
"""
STATE = "`h.detach()` cuts a state off at each step of a loop, 5 times in the graph of one backward pass"
LAST = LOOP.replace("        loss = loss +", "    loss =").replace("y[t]", "y[0]")
ONE_BY_ONE = LAST.replace("GRUCell", "GRU").replace("torch.zeros(4, 8)", "torch.zeros(1, 4, 8)")
READER = """\
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.new = nn.Linear(11, 8), nn.Linear(11, 8)
    def forward(self, x, h):
        g = self.gate(torch.cat([x, h], 1)).sigmoid()
        return g * h + (1 - g) * self.new(torch.cat([x, g * h], 1)).tanh()
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head, self.state = Cell(), nn.Linear(8, 1), None
    def forward(self, x):
        h = self.cell(x, self.state)
        self.state = h.detach()  #!
        return self.head(h)
model = Reader()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def read(x):
    model.state = torch.zeros(4, 8)
    for part in x.unbind(1):
        out = model(part)
    return out
for _ in range(3):
    x, y = torch.randn(4, 6, 3), torch.randn(4, 1)
    loss = (read(x) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
AFTER = LAST.replace("h.detach())  #!", "h); out = head(h); h = h.detach()  #!").replace("(head(h) -", "(out -")
WRONG = {
    "a state of which only the last is read": (
        LAST + STEP, "`h.detach()` cuts a state off at each step of a loop, 5 times before one backward pass, whose"),
    "a state of a layer of which only the last is read": (
        ONE_BY_ONE.replace("h = cell(x[t], h.detach())", "_, h = cell(x[t : t + 1], h.detach())") + STEP,
        "5 times before one backward pass, whose graph has only the last step"),
    "a state that a step detaches at its end": (
        AFTER + STEP, "6 times before one backward pass, whose graph has only the last step"),
    "a state that a module detaches at its end": (
        READER, "6 times before one backward pass, whose graph has only the last step"),
    "a state that a module detaches, also in an evaluation": (
        READER + "for part in x.unbind(1):\n    model(part)\n", "6 times before one backward pass"),
    "a state of a cell": (LOOP + STEP, STATE),
    "data of a state": (LOOP.replace("h.detach()", "h.data") + STEP, "`h.data` cuts a state off at each step"),
    "states of two cells": (
        LOOP.replace("cell, head = nn.GRUCell(3, 8),", (
            "cells, head = nn.ModuleList([nn.GRUCell(3, 8), nn.GRUCell(8, 8)]),"))
        .replace("cell.parameters", "cells.parameters").replace(BEGIN, "    state, loss = [torch.zeros(4, 8)] * 2, 0\n")
        .replace("h = cell(x[t], h.detach())  #!", "state, h, new = [s.detach() for s in state], x[t], []  #!\n"
                 "        for cell, s in zip(cells, state):\n            h = cell(h, s)\n            new.append(h)\n"
                 "        state = new") + STEP,
        "`s.detach()` cuts a state off at each step of a loop, 5 times in the graph of one backward pass"),
    "the other way round": (
        TABLE.replace("q = codes[index]  #!", "q = codes[index]").replace(
            "decoder(q)", "decoder(s)").replace("    extra", "    s = q + (z - q).detach()  #!\n    extra") + STEP,
        "has the value of `z` and the gradient of `q`"),
    "the other way round, in another layout": (
        TABLE.replace("z = encoder(x)", "z = encoder(x).t()").replace("cdist(z,", "cdist(z.t(),")
        .replace("codes[index]  #!", "codes[index].t()").replace("decoder(q)", "decoder(s.t())")
        .replace("    extra", "    s = q + (z - q).detach()  #!\n    extra") + STEP,
        "has the value of `z` and the gradient of `q`"),
    "the other way round, in one sum": (
        TABLE.replace("q = codes[index]  #!", "q = codes[index]").replace(
            "decoder(q)", "decoder(s)").replace("    extra", "    s = q - (q - z).detach()  #!\n    extra") + STEP,
        "has the value of `z` and the gradient of `q`"),
    "the other way round, for a sign": (
        SIGN.replace("join(hard, z)", "join(z, hard)").replace("slope).detach()", "slope).detach()  #!"),
        "has the value of `value` and the gradient of `slope`, which is rounded from `value`"),
    "the other way round, for a comparison": (
        SIGN.replace("join(hard, z)", "z.detach() - hard.detach() + hard  #!").replace(
            "z.sign()", "torch.where(z > 0, 1.0, -1.0)"),
        "has the value of `z` and the gradient of `hard`, which is rounded from `z`"),
    "the other way round, without a graph": (
        SIGN.replace("hard = z.sign()", "unit = z.detach().abs().amax() / 3; hard = torch.round(z / unit) * unit")
        .replace("bits = join(hard, z)", (
            "with torch.no_grad():\n        gap = z - hard\n    bits = hard.float() + gap.clone()  #!")),
        "has the value of `z` and the gradient of `hard`, which is rounded from `z`"),
    "the other way round, without a graph in a function": (
        SIGN.replace("def join", "@torch.no_grad()\ndef gap(value, other):\n    return value - other\ndef join")
        .replace("join(hard, z)", "torch.add(hard, gap(z, hard))  #!"),
        "has the value of `value` and the gradient of `hard`, which is rounded from `value`"),
    "the nearest code, by its distance": (
        TABLE.replace("argmin(1)", "min(dim=1).indices").replace(
            "codes[index]", "codes.index_select(0, index).view_as(z)") + STEP, "passes no gradient on to"),
    "the nearest code": (TABLE + STEP, "`codes[index]` passes no gradient on to `encoder.weight` and `encoder.bias`: "),
    "the nearest code, by an embedding": (
        TABLE.replace("codes[index]", "nn.functional.embedding(index, codes)") + STEP, "passes no gradient on to"),
    "the nearest code, by a row of zeros and a one": (
        TABLE.replace("codes[index]", "nn.functional.one_hot(index, 5).to(z) @ codes") + STEP, "passes no gradient on"),
    "the nearest code, by a scattered one": (
        TABLE.replace("codes[index]", "torch.mm(torch.zeros(16, 5).scatter_(1, index[:, None], 1), codes)").replace(
            "cdist(z, codes).argmin(1)", "cdist(z, codes).neg().argmax(1)") + STEP, "passes no gradient on to"),
    "the nearest code, gathered": (
        TABLE.replace("codes[index]", "codes.gather(0, index[:, None].expand(-1, 4))") + STEP, "passes no gradient on"),
    "distances without a graph": (
        TABLE.replace("    index = ", "    with torch.no_grad():\n        index = ") + STEP, "`codes[index]` passes"),
    "unfrozen for an optimizer that steps no more": (
        FROZEN, "`body.weight` and `body.bias` get gradients after `body.requires_grad_(True)`, but no optimizer that"),
}  # fmt: skip
RIGHT = {
    "a pass at each step": READER.replace("        out = model(part)\n", (
        "        out = model(part)\n        opt.zero_grad()\n        (out - part.sum()).square().mean().backward()\n"
        "        opt.step()\n")).replace("    loss = (read(x) - y).square().mean()\n    opt.zero_grad()\n"
                                         "    loss.backward()\n    opt.step()\n", "    read(x)\n"),
    "a step after some that only give a state": READER.replace("x.unbind(1):", "x[:, :5].unbind(1):").replace(
        "    return out", "    return model(x[:, 5])"),
    "a step after a function that only gives a state": READER.replace("x.unbind(1):", "x[:, :5].unbind(1):").replace(
        "loss = (read(x) -", "read(x); loss = (model(x[:, 5]) -"),
    "a prediction that is the next input": (
        AFTER.replace("out = head(h); h = h.detach()", "out = h; h = h.detach()").replace("torch.randn(6, 4, 1)", (
            "torch.randn(6, 4, 8)")) + STEP),
    "steps that warm up a module": READER.replace("    loss = (read(x) - y)", (
        "    model.state = torch.zeros(4, 8)\n    for part in x[:, :5].unbind(1):\n        model(part)\n"
        "    loss = (model(x[:, 5]) - y)")).replace("    opt.zero_grad()\n    loss.backward()\n", (
        "    opt.zero_grad()\n    update(loss)\n")).replace(
        "def read", "def update(loss):\n    loss.backward()\ndef read"),
    "an iteration to a fixed point, detached at its end": AFTER.replace("x[t]", "x[0]") + STEP,
    "a module that iterates to a fixed point": READER.replace("x.unbind(1)", "[x[:, 0]] * 6"),
    "moves of a policy with a pass for the last parts": READER.replace(
        "self.state = h.detach()  #!", "self.state = h if self.keeps else h.detach()").replace(
        "model = Reader()", "model = Reader()\nmodel.keeps = False").replace("    for part in", (
            "    with torch.no_grad():\n        for part in x.unbind(1):\n            model(part)\n"
            "    model.keeps = True\n    for part in")),
    "chunks with a pass each": READER.replace("h.detach()  #!", "h").replace(
        "        out = model(part)\n", "        out = model(part)\n    model.state = model.state.detach()\n"),
    "an iteration to a fixed point": LAST.replace("x[t]", "x[0]") + STEP,
    "steps that only give a state": LAST.replace("range(6)", "range(5)").replace(
        "cell(x[t], h.detach())", "cell(x[t], h).detach()").replace(
        "    loss =", "    h = cell(x[5], h)\n    loss =") + STEP,
    "steps of a function that only give a state": LAST.replace("range(6)", "range(5)").replace(
        "h = cell(x[t], h.detach())", "h = advance(x[t], h).detach()").replace(
        "    loss =", "    h = advance(x[5], h)\n    loss =").replace(
        "for _", "def advance(x, h):\n    return cell(x, h)\nfor _") + STEP,
    "noise that is added at each step": """\
net = nn.Linear(3, 3)
opt = torch.optim.Adam(net.parameters())
for _ in range(3):
    noise, x = torch.randn(8, 4, 3), torch.randn(4, 3)
    for k in range(8):
        x = x.detach()
        x = x - 0.1 * net(x).tanh() + noise[k]
    loss = (x - 1).square().mean()
""" + STEP,
    "the last two steps": LAST.replace("h.detach()", "h.detach() if t < 5 else h") + STEP,
    "a state with its graph": LOOP.replace("h.detach()", "h") + STEP,
    "a state that is detached between passes": LOOP.replace(BEGIN, "    h = torch.zeros(4, 8)\n")
    .replace("        loss = loss +", "        loss =").replace("h.detach()  #!", "h")
    + "        opt.zero_grad()\n        loss.backward()\n        opt.step()\n        h = h.detach()\n",
    "an output that is fed back": FEEDBACK.replace("cell(x[t], h.detach())  #!", (
        "cell(x[t] + out.detach(), h)\n        out = head(h)")) + STEP,
    "one of two states": LOOP.replace("GRUCell", "LSTMCell").replace(BEGIN, BEGIN + "    c = torch.zeros(4, 8)\n")
    .replace("h = cell(x[t], h.detach())  #!", "h, c = cell(x[t], (h.detach(), c))") + STEP,
    "a second state that keeps its graph": SECOND + STEP,
    "layers that train by their own losses": LAYERS + STEP,
    "every second step": LOOP.replace("h.detach()", "h.detach() if t % 2 else h") + STEP,
    "a straight-through estimate": TABLE.replace("decoder(q)", "decoder(z + (q - z).detach())") + STEP,
    "a straight-through sign": SIGN,
    "a straight-through step": SIGN.replace("join(hard, z)", "z - (z - (z * 4).round() / 4).detach()"),
    "a straight-through step without a graph": SIGN.replace("bits = join(hard, z)", (
        "with torch.no_grad():\n        gap = hard - z\n        back = hard + (z - hard)\n    bits = z + gap")),
    "a residual": SIGN.replace("bits = join(hard, z)", (
        "with torch.no_grad():\n        rest = z - hard\n    bits = join(hard, z) + rest.sign() * 0.1")),
    "a soft step": SIGN.replace("join(hard, z)", "join(z, (4 * z).tanh())"),
    "a straight-through estimate of a product": TABLE.replace(
        "codes[index]", "nn.functional.one_hot(index, 5).to(z) @ codes").replace(
        "decoder(q)", "decoder(z + (q - z).detach())") + STEP,
    "soft weights": TABLE.replace("codes[index]", "torch.cdist(z, codes).neg().softmax(1) @ codes") + STEP,
    "a token that is fed back": TABLE.replace("cdist(z, codes).argmin(1)", "mm(z, codes.t()).argmax(1)") + STEP,
    "both ways": TABLE.replace("decoder(q)", "decoder(z + (q - z).detach())").replace(
        "    loss =", "    extra = extra + (decoder(q + (z - q).detach()) - x).square().mean()\n    loss =") + STEP,
    "a projection": TABLE.replace("codes[index]", "z @ (codes.t() @ codes)").replace(
        "z = encoder(x)", "z = encoder(x)\n    z = z / z.max()").replace(
        "decoder(q)", "decoder(q + (z - q).detach())") + STEP,
    "a decoder that reads both": TABLE.replace(
        "+ extra", "+ extra + (decoder(z) - x).square().mean()") + STEP,
    "tokens of a table": TABLE.replace("torch.cdist(z, codes).argmin(1)", "torch.randint(0, 5, (16,))") + STEP,
    "chosen by another table": TABLE.replace("cdist(z, codes)", "cdist(z, torch.randn(5, 4))") + STEP,
    "unfrozen for a new optimizer": FROZEN.replace("  #!\n", (
        "\nopt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)\n")),
    "unfrozen, and added": FROZEN.replace("  #!\n", "\nopt.add_param_group({'params': body.parameters()})\n"),
    "unfrozen at the end": FROZEN.replace("  #!\ntrain(opt)\n", "\nf().backward()\n"),
    "still frozen": FROZEN.replace("body.requires_grad_(True)  #!\n", ""),
}  # fmt: skip
WORDS = ("has the value of", "cuts a state off", "passes no gradient on to", "holds them")


@pytest.mark.parametrize("name", WRONG)
def test_paths_that_end_unseen_are_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_paths_that_go_on_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []


def test_a_parameter_that_another_one_has_replaced_in_its_group_is_left_alone(tmp_path: Path) -> None:
    body = """\
    table = nn.Embedding(4, 2)
    opt = torch.optim.SGD(table.parameters(), lr=0.1)
    def train():
        for _ in range(3):
            opt.zero_grad()
            table(torch.arange(4)).square().sum().backward()
            opt.step()
    train()
    table.weight = nn.Parameter(torch.cat([table.weight.detach(), torch.randn(2, 2)]))
    opt.param_groups[0]["params"][0] = table.weight
    train()
    """
    assert [each.text for each in sentences(tmp_path, body) if "in no optimizer" in each.text] == []
