"""Checks the sentence about an update that a line adds to parameters again and again."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 3).requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.zeros(3, 2))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T

    def train(self, mode=True):
        if not mode:
            self.base.weight.data += self.b.data @ self.a.data  #!
        return super().train(mode)

net = Adapted()
opt = torch.optim.SGD([net.a, net.b], lr=0.1)
for _ in range(4):
    net.train()
    for _ in range(2):
        x = torch.randn(8, 4)
        loss = (net(x) - x[:, :3]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        net(x)
"""
IN_PLACE = "self.base.weight.data += self.b.data @ self.a.data"
END = "        return super"
TWICE = BODY.replace(
    END, ("        elif not self.training:\n            self.base.weight.data -= self.b.data @ self.a.data\n" + END)
) + ("    net.eval()\n")
AFTER_TRAINING = "PRE = 2\n" + TWICE.replace(".requires_grad_(False)", "").replace(
    "opt = torch",
    (
        "first = torch.optim.SGD(net.base.parameters(), lr=0.1)\n"
        "for _ in range(2):\n"
        "    x = torch.randn(8, 4)\n"
        "    first.zero_grad()\n"
        "    net(x).square().mean().backward()\n"
        "    first.step()\n"
        "net.base.requires_grad_(False)\n"
        "opt = torch"
    ),
)
ONCE = TWICE.replace("if not mode:", "if not mode and self.training:").replace("elif not", "elif mode and not")
LOADED = ONCE.replace("net = Adapted()", "import copy\nnet = Adapted().train()") + (
    "    if _ == 1:\n        best = copy.deepcopy(net.state_dict())\n"
    "net.train()\nnet.load_state_dict(best)\nnet.eval()\nwith torch.no_grad():\n    net(x)\n"
)
AS_DATA = BODY.replace(IN_PLACE, "self.base.weight.data = self.base.weight.data + self.b.data @ self.a.data")
COPIED = BODY.replace(IN_PLACE, "self.base.weight.data.copy_(self.base.weight.data + self.b.data @ self.a.data)")
OUT = BODY.replace(IN_PLACE, (
    "w = self.base.weight.data; torch.addmm(w, self.b.data, self.a.data, out=w)"))  # fmt: skip
WITH_ALPHA = LOADED.replace(
    "self.base.weight.data -= self.b.data @ self.a.data",
    "self.base.weight.data.add_(self.b.data @ self.a.data, alpha=-1)",
)
RIGHT = {
    "loaded where the update is in": LOADED.replace("net.train()\nnet.load", "net.load"),
    "kept without the update": LOADED.replace("  best =", "  net.train()\n        best =").replace(
        "net.train()\nnet.load", "net.train()\nnet.load"),
    "kept without the update, taken out by a sign": WITH_ALPHA.replace("  best =", "  net.train()\n        best ="),
    "folded in and out by sums": AS_DATA.replace("if not mode:", "if not mode and self.training:").replace(END, (
        "        elif mode and not self.training:\n"
        "            self.base.weight.data = self.base.weight.data - self.b.data @ self.a.data\n" + END)),
    "folded in and out by functions": OUT.replace(END, (
        "        elif not self.training:\n            w = self.base.weight.data\n"
        "            torch.addmm(w, self.b.data, self.a.data, alpha=-1, out=w)\n" + END)),
    "loaded, and taken out": LOADED.replace("net.train()\nnet.load", "net.load").replace(
        "\nnet.eval()\nwith", "\nnet.train()\nwith"),
    "loaded, and set": LOADED.replace("net.load_state_dict(best)\n", (
        "net.load_state_dict(best)\nnet.base.weight.data.zero_()\n")),
    "folded, and begun again": BODY.replace("  #!", (
        "\n            nn.init.normal_(self.a)\n            nn.init.zeros_(self.b)")),
    "twice, but once at a time": ONCE,
    "taken out again": BODY.replace(
        "        return super", "        elif not self.training:\n            "
        "self.base.weight.data -= self.b.data @ self.a.data\n        return super"),
    "an average": BODY.replace(IN_PLACE, "self.base.weight.data += 0.1 * (self.b @ self.a - self.base.weight).data"),
    "once": BODY.replace("if not mode:", "if not mode and not hasattr(self, 'done'):\n            self.done = True"),
    "replaced": BODY.replace(IN_PLACE, "self.base.weight.data = (self.b @ self.a).data"),
    "by a sign": BODY.replace("            " + IN_PLACE, "            self.fold(1)").replace(END, (
        "        elif not self.training:\n            self.fold(-1)\n" + END)).replace("    def train(", (
        "    def fold(self, sign):\n        self.base.weight.data += sign * (self.b.data @ self.a.data)\n\n"
        "    def train(")),
    "by a variable with a sign": BODY.replace("            " + IN_PLACE, "            self.fold(1)").replace(END, (
        "        elif not self.training:\n            self.fold(-1)\n" + END)).replace("    def train(", (
        "    def fold(self, sign):\n        update = sign * (self.b.data @ self.a.data)\n"
        "        self.base.weight.data += update\n\n    def train(")),
    "by an attribute that changes": BODY.replace("if not mode:", "if True:").replace(
        IN_PLACE, "self.base.weight.data += self.sign * (self.b.data @ self.a.data)\n            self.sign = -self.sign"
    ).replace("        self.a, self.b", "        self.sign = 1\n        self.a, self.b"),
    "by a global that changes": "import itertools\nSIGNS = itertools.cycle([1, -1])\n" + BODY.replace(
        IN_PLACE, "self.base.weight.data += next(SIGNS) * (self.b.data @ self.a.data)"),
    "by new factors": BODY.replace("  #!", (
        "\n            self.a, self.b = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.zeros(3, 2))")).replace(
        "    net.train()\n", "    net.train()\n    opt = torch.optim.SGD([net.a, net.b], lr=0.1)\n"),
    "a sum of weights": BODY.replace(IN_PLACE, "self.base.weight.data += self.c.data").replace(
        "        self.a, self.b", "        self.c = nn.Parameter(torch.randn(3, 4))\n        self.a, self.b").replace(
        "[net.a, net.b]", "[net.a, net.b, net.c]").replace("return self.base(x)", "return self.base(x) + x @ self.c.T"),
    "put back": BODY.replace("            " + IN_PLACE, (
        "            self.kept = self.base.weight.data.clone()\n            " + IN_PLACE)).replace(END, (
        "        elif not self.training:\n            self.base.weight.data = self.kept\n" + END)),
    "of data alone": BODY.replace(IN_PLACE, "self.base.weight.data += 0.01"),
}  # fmt: skip
WORDS = "the changes add up"


LOCAL = BODY.replace(
    "        if not mode:", "        update = self.b.data @ self.a.data\n        if not mode:"
).replace(IN_PLACE, "self.base.weight.data += update")


OF_LAYERS = (
    BODY.replace(
        "self.a, self.b = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.zeros(3, 2))",
        "self.a, self.b = nn.Linear(4, 2, bias=False), nn.Linear(2, 3, bias=False)",
    )
    .replace("x @ self.a.T @ self.b.T", "self.b(self.a(x))")
    .replace("[net.a, net.b]", "[net.a.weight, net.b.weight]")
    .replace(IN_PLACE, "with torch.no_grad(): self.base.weight += self.b.weight @ self.a.weight")
)


def test_an_update_by_the_weights_of_layers_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, OF_LAYERS) if WORDS in each.text)
    assert "each time by a value of `net.a.weight` and `net.b.weight`" in found.text


@pytest.mark.parametrize(
    "text",
    [BODY, BODY.replace(IN_PLACE, "self.base.weight.add_((self.b @ self.a).detach())"), LOCAL, AS_DATA, COPIED, OUT],
)
def test_an_update_that_is_added_again_is_named(tmp_path: Path, text: str) -> None:
    (found,) = (each for each in sentences(tmp_path, text) if WORDS in each.text)
    assert "changes `net.base.weight` 4 times, each time by a value of `net.a` and `net.b`" in found.text
    assert found.labels[0].span.line == marked(text)


@pytest.mark.parametrize("text", [LOADED, WITH_ALPHA])
def test_values_that_are_loaded_with_the_update_are_named(tmp_path: Path, text: str) -> None:
    (found,) = (each for each in sentences(tmp_path, text) if "a second time" in each.text)
    assert "adds a value of `net.a` and `net.b` to `net.base.weight` a second time" in found.text
    assert "`net.load_state_dict(best)` has loaded values that were kept with one in them" in found.text
    lines = LOADED.splitlines()
    named = [lines[label.span.line - 4].strip() for label in found.labels]
    assert named[0] == "net.load_state_dict(best)"
    assert named[1] == "best = copy.deepcopy(net.state_dict())"


@pytest.mark.parametrize("name", RIGHT)
def test_other_changes_are_left_alone(tmp_path: Path, name: str) -> None:
    found = [each.text for each in sentences(tmp_path, RIGHT[name])]
    assert [text for text in found if WORDS in text or "a second time" in text] == []


BOOSTED = """\
total, weak = nn.Linear(4, 1), nn.Linear(4, 1)
total.requires_grad_(False)
nn.init.zeros_(total.weight)
x, y = torch.randn(16, 4), torch.randn(16, 1)
opt = torch.optim.SGD(weak.parameters(), lr=0.1)
for _ in range(4):
    loss = (weak(x) - (y - total(x))).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        total.weight.copy_(total.weight + 0.5 * weak.weight)
"""


def test_a_sum_that_begins_with_zeros_is_left_alone(tmp_path: Path) -> None:
    assert [each.text for each in sentences(tmp_path, BOOSTED) if WORDS in each.text] == []
    body = BOOSTED.replace("nn.init.zeros_(total.weight)\n", "")
    assert [each.text for each in sentences(tmp_path, body) if WORDS in each.text] != []


@pytest.mark.parametrize("body", [TWICE, AFTER_TRAINING])
def test_an_update_that_is_added_twice_and_taken_out_once_is_named(tmp_path: Path, body: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert "8 times" in found.text
    assert "4 of these right after another one" in found.text
    assert "takes it out only 3 times" in found.text
    assert found.labels[0].span.line == marked(body)
