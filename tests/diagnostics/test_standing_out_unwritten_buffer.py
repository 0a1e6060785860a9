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
WRONG = {"a range": PEAK, "a power iteration": POWER}
RIGHT = {
    "written back": PEAK.replace(
        "        return x / peak", "            self.peak.copy_(peak)\n        return x / peak"
    ),
    "set anew": PEAK.replace("        return x / peak", "            self.peak = peak\n        return x / peak"),
    "in place": PEAK.replace(UPDATE, "peak.mul_(0.9).add_(0.1 * x.detach().abs().amax())"),
    "given out": POWER.replace("dim=0)  #!", "dim=0, out=u)"),
    "set by its data": PEAK.replace(
        "        return x / peak", "            self.peak.data = peak\n        return x / peak"
    ),
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
