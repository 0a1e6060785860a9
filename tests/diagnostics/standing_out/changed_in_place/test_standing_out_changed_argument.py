"""Checks the sentence about modules that change their argument in place, where the caller reads it again."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BLOCK = """\
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.body = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(width, width), nn.Linear(width, width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.body(x)  #!

"""
TRAIN = """\
net = nn.Sequential(nn.Linear(4, 8), Block(8), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(16, 4)).square().mean().backward()
    opt.step()
"""
RESIDUAL = "        return x + self.body(x)  #!\n"


def block(forward: str) -> str:
    assert RESIDUAL in BLOCK
    return BLOCK.replace(RESIDUAL, forward) + TRAIN


WRONG = {
    "a residual connection": BLOCK + TRAIN,
    "added to the argument": block("        out = self.body(x)  #!\n        return out + x\n"),
    "a name for the shortcut": block(
        "        shortcut = x\n        out = self.body(x)  #!\n        out = out / 2\n        return out + shortcut\n"),
    "a module of its own": block("        y = self.act(x)  #!\n        y = self.norm(y)\n        return x - y\n"),
    "the same name for the sum": block("        x = x + self.body(x)  #!\n        return x\n"),
    "dropout": BLOCK.replace("nn.Sequential(nn.ReLU(inplace=True)", "nn.Sequential(nn.Dropout(0.5, inplace=True)")
    + TRAIN,
    "a function in place": block(
        "        y = nn.functional.relu(x, inplace=True)  #!\n        y = self.norm(y)\n        return x + y\n"),
    "in a call": block("        y = self.norm(nn.functional.relu(x, inplace=True))  #!\n        return x + y\n"),
    "a function": "body = nn.Sequential(nn.SiLU(inplace=True), nn.Linear(8, 8))\ndef Block(width):\n    return Add()\n"
    "class Add(nn.Module):\n    def forward(self, x):\n        y = body(x)  #!\n"
    "        return torch.cat([x, y], 1)[:, :8]\n" + TRAIN,
}  # fmt: skip
SCALER = """\
class Scaler(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.full((4,), 2.0))
    def forward(self, s):
        s -= self.mean  #!
        return s
def blank(frames):
    frames.narrow(1, 0, 2).zero_()  #!
    return frames
scale, net = Scaler(), nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(6, 4)
    loss = (x + net(scale(x))).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SCALED = "    loss = (x + net(scale(x))).square().mean()\n"


def scaled(lines: str) -> str:
    """Returns the script with only the one of two marks whose function it calls."""
    body = SCALER.replace(SCALED, lines)
    unused = "zero_()" if "scale(" in lines or "scaled" in lines else "self.mean"
    return body.replace(f"{unused}  #!", unused)


WRONG |= {
    "targets of another shape": scaled(
        "    loss = nn.functional.mse_loss(net(scale(x)).flatten(), x.flatten().clamp(-9, 9))\n"),
    "a module of the script": scaled("    h = scale(x)\n    loss = (x + net(h)).square().mean()\n"),
    "a view is blanked": scaled(
        "    frames = x.t()\n    loss = (net(blank(frames).t()) - x).square().mean()\n"),
}  # fmt: skip
RIGHT = {
    "a function that gets a copy": scaled("    loss = (x + net(scale(x.clone()))).square().mean()\n"),
    "a function whose result has the name": scaled("    x = scale(x)\n    loss = (x + net(x)).square().mean()\n"),
    "a function called to change": scaled("    scale(x)\n    loss = (x + net(x)).square().mean()\n"),
    "a result that is read alone": scaled("    h = scale(x)\n    loss = (h + net(h)).square().mean()\n"),
    "a log": scaled("    h = scale(x)\n    loss = (h + net(h)).square().mean()\n    print(x.mean().item(), end='')\n"),
    "a copy of the view is blanked": scaled(
        "    frames = x.t().clone()\n    loss = (net(blank(frames).t()) - x).square().mean()\n"),
    "a log of other values": scaled(
        "    h = scale(x)\n    loss = (h + net(h)).square().mean()\n    print(float(x.abs().mean()), end='')\n"),
    "a memory": scaled("    h = store(x, net(x))\n    loss = (h + net(x)).square().mean()\n").replace(
        "scale, net", "def store(memory, new):\n    memory[:, 0] = new[:, 0].detach()\n    return memory\nscale, net"),
    "activations as statements": block("        self.act(x)\n        return self.norm(x)\n"),
    "not in place": BLOCK.replace("inplace=True", "inplace=False") + TRAIN,
    "a layer before it": BLOCK.replace("nn.Sequential(nn.ReLU(inplace=True), nn.Linear(width, width)",
                                       "nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True)") + TRAIN,
    "the result has the name": block("        x = self.act(x)\n        return x + self.norm(x)\n"),
    "not read again": block("        out = self.act(x)\n        return self.norm(out)\n"),
    "written by the function itself": block("        y = x.relu_()\n        return x + self.norm(y)\n"),
    "the same name": block("        x = nn.functional.relu(x, inplace=True)\n        return x + self.norm(x)\n"),
    "a copy": block("        return x + self.body(x.clone())\n"),
    "layers in a loop": block("        for layer in self.body:\n            x = layer(x)\n        return x\n"),
    "set again": block("        y = self.act(x)\n        x = self.norm(y)\n        return x + y\n"),
}  # fmt: skip
IN_PLACE = "        y = nn.functional.relu(x, inplace=True)\n"
RIGHT |= {
    "the same function again": block(IN_PLACE + "        return y + 0.5 * nn.functional.relu(x)\n"),
    "a module of the same function again": block(IN_PLACE + "        return self.norm(y) + self.norm(nn.ReLU()(x))\n"),
    "a check": block(IN_PLACE + "        assert (x >= 0).all()\n        return self.norm(y)\n"),
    "a log of the function's result": block(
        IN_PLACE + "        print((x == 0).float().mean().item(), end='')\n        return self.norm(y)\n"),
}  # fmt: skip
WRONG |= {
    "the same function again, and another": block(IN_PLACE.rstrip() + (
        "  #!\n        y = y + nn.functional.relu(x)\n        return self.norm(y) + x\n")),
    "another function": block(IN_PLACE.rstrip() + "  #!\n        return self.norm(y) + nn.functional.silu(x)\n"),
}  # fmt: skip
WORDS = "then reads the changed values"


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_that_is_read_again_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_an_argument_that_nothing_reads_again_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
