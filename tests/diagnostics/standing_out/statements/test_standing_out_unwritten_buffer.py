"""Checks the sentence about buffers whose new values only a variable gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

PEAK = """\
class Range(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.tensor(1.0))

    def forward(self, x):
        peak = self.peak
        if self.training:
            peak = 0.9 * peak + 0.1 * x.detach().abs().amax()  #!
        return x / peak

net = nn.Sequential(nn.Linear(3, 3), Range(), nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = net(torch.randn(8, 3)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
UPDATE = "peak = 0.9 * peak + 0.1 * x.detach().abs().amax()"
POWER = """\
class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))
        self.register_buffer("u", nn.functional.normalize(torch.randn(4), dim=0))

    def forward(self, x):
        u = self.u
        if self.training:
            with torch.no_grad():
                for _ in range(2):
                    v = nn.functional.normalize(self.weight.t() @ u, dim=0)
                    u = nn.functional.normalize(self.weight @ v, dim=0)  #!
        return nn.functional.linear(x, self.weight / (u @ self.weight @ v))

net = nn.Sequential(Normed(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = net(torch.randn(8, 3)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
MEAN = """\
def average(old, new):
    return old - 0.1 * (old - new)

class Centre(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("power", torch.ones(3))

    def forward(self, x):
        mean, power = self.mean, self.power
        if self.training:
            mean, power = average(self.mean, x.mean(0).detach()), self.power  #!
        return (x - mean) / power
""" + PEAK[PEAK.index("\nnet =") :].replace("Range()", "Centre()")
READ, AVERAGE = "mean, power = self.mean, self.power\n", "average(self.mean, x.mean(0).detach()), self.power"
CHOICE = MEAN.replace("        if self.training:\n            " + f"mean, power = {AVERAGE}  #!\n", "").replace(
    READ,
    "power = self.power\n"
    "        mean = self.mean.mul(0.9).add(x.mean(0), alpha=0.1) if self.training else self.mean  #!\n",
)
WRONG = {
    "a range": PEAK,
    "a power iteration": POWER,
    "a function, several at once": MEAN,
    "a method": MEAN.replace(AVERAGE, "self.mean.lerp(x.mean(0).detach(), 0.1), self.power"),
    "a choice": CHOICE,
}  # fmt: skip
RIGHT = {
    "a function that changes it": MEAN.replace("return old - 0.1 * (old - new)", "return old.lerp_(new, 0.1)"),
    "a function that gets it": MEAN.replace("    return old", "    old.data = old.lerp(new, 0.1)\n    return old"),
    "a method in place": MEAN.replace(AVERAGE, "self.mean.lerp_(x.mean(0).detach(), 0.1), self.power"),
    "another method writes": MEAN.replace(
        "        return (x - mean)", "        self.keep(mean)\n        return (x - mean)"
    ).replace(
        "    def forward", "    def keep(self, mean):\n        self.mean.copy_(mean.detach())\n\n    def forward"
    ),
    "written back": PEAK.replace(
        "        return x / peak", "            self.peak.copy_(peak)\n        return x / peak"
    ),
    "set anew": PEAK.replace("        return x / peak", "            self.peak = peak\n        return x / peak"),
    "in place": PEAK.replace(UPDATE, "peak.mul_(0.9).add_(0.1 * x.detach().abs().amax())"),
    "given out": POWER.replace("dim=0)  #!", "dim=0, out=u)"),
    "set by its data": PEAK.replace(
        "        return x / peak", "            self.peak.data = peak\n        return x / peak"
    ),
    "a mixture with a constant": PEAK.replace(UPDATE, "peak = 0.9 * peak + 0.1 / 4"),
    "a value that is returned": PEAK.replace(
        "return x / peak", "out, kept = x / peak, x\n        return out, peak"
    ).replace("loss = net(torch.randn(8, 3))", "out, top = net[1](net[0](torch.randn(8, 3)))\n    loss = net[2](out)"),
    "a prior": PEAK.replace("peak", "prior"),
    "statistics of other data": PEAK.replace(
        "def __init__(self):", "def __init__(self, peak=torch.tensor(1.0)):"
    ).replace('register_buffer("peak", torch.tensor(1.0))', 'register_buffer("peak", peak.clone())'),
    "noise": PEAK.replace(UPDATE, "peak = 0.9 * peak + 0.1 * torch.rand(())"),
    "the batch alone": PEAK.replace(UPDATE, "peak = x.detach().abs().amax()"),
    "in all modes": PEAK.replace("if self.training:", "if True:"),
    "a parameter": PEAK.replace(
        'self.register_buffer("peak", torch.tensor(1.0))', "self.peak = nn.Parameter(torch.ones(()))"
    ),
}
WORDS = "no line writes to the buffer"


@pytest.mark.parametrize("name", WRONG)
def test_a_buffer_that_keeps_its_value_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_buffers_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
