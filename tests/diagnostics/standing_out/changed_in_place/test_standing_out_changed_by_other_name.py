"""Checks the sentence about a tensor that is changed by one variable and read by another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(32, 4)
for _ in range(3):
    x = data[torch.randint(0, 32, (8,))]
    noisy = x
    noisy += 0.5 * torch.randn(8, 4)  #!
    loss = nn.functional.mse_loss(net(noisy), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
IN_PLACE = "noisy += 0.5 * torch.randn(8, 4)"
WRONG = {
    "an addition": BODY,
    "a method": BODY.replace(IN_PLACE, "noisy.add_(torch.randn(8, 4))"),
    "a chain of methods": BODY.replace(IN_PLACE, "noisy.mul_(0.9).add_(torch.randn(8, 4))"),
    "items": BODY.replace(IN_PLACE, "noisy[torch.rand(8, 4) < 0.5] = 0.0"),
    "a part": BODY.replace(IN_PLACE, "noisy[:, 1:3] *= 0.5"),
    "in a function": BODY.replace("    noisy = x\n", "").replace("    " + IN_PLACE + "  #!\n", "").replace(
        "net(noisy), x", "*pair(x)").replace(
        "for _ in", "def pair(x):\n    noisy = x\n    noisy += 0.5 * torch.randn(8, 4)  #!\n"
        "    return net(noisy), x.mul(1.0)\nfor _ in"),
}  # fmt: skip
RIGHT = {
    "items of a copy": BODY.replace("noisy = x", "noisy = x.clone()").replace(IN_PLACE, "noisy[:, 0] = 0.0"),
    "items of another tensor": BODY.replace(IN_PLACE, "noisy = torch.zeros(8, 4)\n    noisy[:, 0] = 1.0"),
    "a copy": BODY.replace("noisy = x", "noisy = x.clone()"),
    "no change in place": BODY.replace(IN_PLACE, "noisy = noisy + 0.5 * torch.randn(8, 4)"),
    "read before": BODY.replace("    noisy = x\n", "    target = x.clone()\n    noisy = x\n").replace("(noisy), x",
                                                                                            "(noisy), target"),
    "read by one name": BODY.replace("net(noisy), x", "net(x), x"),
    "set again": BODY.replace("    loss", "    x = data[:8]\n    loss"),
}  # fmt: skip
PAIR = BODY.replace("    noisy = x\n", "    noisy, x = pair(x)\n").replace("    " + IN_PLACE + "  #!\n", "")
FUNCTION = """\
def pair(noisy):
    x = noisy
    noisy[torch.rand(8, 4) < 0.5] = 0.0  #!
    return noisy, x
"""
CHANGE = "noisy[torch.rand(8, 4) < 0.5] = 0.0"
WRONG |= {
    "the first name": FUNCTION + PAIR,
    "a method, as a dict": FUNCTION.replace(CHANGE, "noisy.mul_(0.5)").replace("noisy, x\n", "dict(a=noisy, b=x)\n")
    + PAIR.replace("pair(x)", "pair(x).values()"),
    "a sum": FUNCTION.replace(CHANGE, "noisy += torch.randn(8, 4)") + PAIR,
    "its other name": FUNCTION.replace("x = noisy", "noisy = x").replace("pair(noisy)", "pair(x)") + PAIR,
}
RIGHT |= {
    "copied in between": FUNCTION.replace("    noisy[", "    noisy = noisy.clone()\n    noisy[") + PAIR,
    "the name of a copy": FUNCTION.replace("x = noisy", "x = noisy.clone()") + PAIR,
    "another branch": FUNCTION.replace("x = noisy\n", "x = noisy.clone()\n    if len(x) > 99:\n        x = noisy\n")
    + PAIR,
    "new values": FUNCTION.replace("return noisy, x", "x = x + 1.0\n    return noisy, x") + PAIR,
}
SUM = """\
def terms(out, y, parts):
    loss = 0
    total = loss
    for part in parts:
        loss += (out[:, part] - y[:, part]).square().mean()
    return loss, total
def logged(stats, key, value):
    out = stats
    out[key] += value
    return out, stats
net, y = nn.Linear(4, 4), torch.randn(8, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
stats = {"loss": torch.zeros(()), "steps": 0}
for _ in range(3):
    loss, _before = terms(net(torch.randn(8, 4)), y, range(4))
    stats, _same = logged(stats, "loss", loss.detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
RIGHT |= {
    "a number and a dict": SUM,
    "a key that is written": SUM.replace("out[key]", 'out["loss"]'),
    "a part of an item of a dict": SUM.replace("out[key] +=", "out[key][...] ="),
    "a number that is given": SUM.replace("    loss = 0\n", "").replace("y, parts)", "y, parts, loss=0)"),
}
STEPS = """\
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train(model):
    for _ in range(3):
        x = torch.randn(8, 4)
        out = model(x)
        loss = (out - x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
train(net)
"""
OTHER_FUNCTION = """\
class Net(nn.Linear):
    def forward(self, x):
        x = super().forward(x)
        out = x
        out += self.bias
        return out
net = Net(4, 4)
"""
FORM = """\
class Net(nn.Linear):
    def forward(self, inputs):
        data = super().forward(inputs)
        x = data
        x -= x.mean(0)
        x = x + 0.1 * torch.randn_like(data) + torch.zeros_like(data)
        return x.view_as(data)
net = Net(4, 4)
"""
RIGHT |= {"names of another function": OTHER_FUNCTION + STEPS, "the form of the other": FORM + STEPS}
RIGHT |= {"the form of the other alone": FORM.replace("x = x + 0.1", "y = x + 0.1").replace("x.view", "y.view") + STEPS}


@pytest.mark.parametrize("name", WRONG)
def test_a_tensor_with_two_names_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if "`x`" in each.text and "are one" in each.text)
    assert found.text.endswith("changes both")
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_changes_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "are one tensor" in each.text] == []
