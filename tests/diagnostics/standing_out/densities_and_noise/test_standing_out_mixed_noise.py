"""Checks the sentences about noise of a target that the input has not got, and about mixtures without roots."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

from tensorlens.records.report import StandingOut

DIFFUSION = """\
F, table = nn.functional, torch.randn(64, 3)
betas = torch.linspace(0.001, 0.1, 20)
bar = torch.cumprod(1 - betas, dim=0)
answers = torch.randn(16, 3)
net = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
class Schedule(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", bar.sqrt())
        self.register_buffer("spread", (1 - bar).sqrt())
        self.register_buffer("rest", 1.0 - bar)
    def pick(self, values, t):
        return values.gather(0, t).view(-1, 1)
schedule = Schedule()
for step in range(3):
    x = table[torch.randint(0, 64, (16,))]
    t, u = torch.randint(0, 20, (16,)), torch.rand(16, 1)
    a = bar[t].unsqueeze(1)
    noise = torch.randn_like(x)
    {mix}
    out = net(torch.cat([xt, t[:, None] / 20], dim=1))
    {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
MIX, LOSS = "xt = a.sqrt() * x + (1 - a).sqrt() * noise", "loss = F.mse_loss(out, noise)"
WRONG = {
    "no roots": ("xt = a * x + (1 - a) * noise  #!", LOSS),
    "one root": ("xt = a.sqrt() * x + noise * (1 - a)  #!", LOSS),
    "tables": ("xt = schedule.pick(schedule.kept, t) * x + schedule.pick(schedule.rest, t) * noise  #!", LOSS),
    "a second draw": (MIX, "loss = F.mse_loss(out, torch.randn_like(x))  #!"),
    "a draw for the input": ("xt = a**0.5 * x + (1 - a) ** 0.5 * torch.randn(16, 3)", LOSS + "  #!"),
    "a velocity": ("xt = (1 - u) * torch.randn_like(x) + u * x", "loss = (out - (x - noise)).square().mean()  #!"),
    "a score": ("xt = x + 0.3 * noise", "loss = (out + 0).sub(-torch.randn_like(x) / 0.3).pow(2).mean()  #!"),
}
RIGHT = {
    "roots": (MIX, LOSS),
    "tables": ("xt = schedule.pick(schedule.kept, t) * x + schedule.pick(schedule.spread, t) * noise", LOSS),
    "a straight line": ("xt = u * x + (1 - u) * noise", "loss = F.mse_loss(out, x - noise)"),
    "two noisy views": (MIX, "loss = F.mse_loss(out, x + 0.1 * torch.randn_like(x))"),
    "noise for a constant input": ("xt = x", "loss = F.mse_loss(out, torch.randn_like(x))"),
    "noisy input": (MIX, "loss = F.mse_loss(out, x)"),
    "codes and draws of a prior": (
        "mu = net[2](net[0](torch.cat([x, u], 1)))\n    xt = mu + 0.1 * noise",
        "out, far = xt, xt.roll(1, 0); loss = 2 * (out - torch.randn_like(x)).norm(dim=1).mean() - (out - far).norm()",
    ),
    "codes with a prior beside the error of the data": (
        "xt = x + 0.1 * noise",
        "loss = F.mse_loss(net[2](net[0](torch.cat([out, u], 1))), x) + 0.1 * F.mse_loss(out, torch.randn_like(x))",
    ),
    "a second head of noise": (
        "xt = x + 0.1 * noise",
        "loss = (out - x).square().mean() + 1e-3 * F.mse_loss(out, torch.randn_like(out))",
    ),
    "a blend that fades, to the data": ("xt = a * x + (1 - a) * noise", "loss = F.mse_loss(out, x)"),
    "noise of a data set": ("xt = x + 0.1 * noise", "loss = F.mse_loss(out, answers)"),
    "a target with the noise of the input": (MIX, "loss = F.mse_loss(out, a.sqrt() * noise - (1 - a).sqrt() * x)"),
}


def _found(folder: Path, body: str) -> list[StandingOut]:
    words = ("mixes data and noise", "draws the noise of the target")
    return [each for each in sentences(folder, body) if any(word in each.text for word in words)]


@pytest.mark.parametrize("case", WRONG)
def test_noise_is_named(tmp_path: Path, case: str) -> None:
    mix, loss = WRONG[case]
    body = DIFFUSION.format(mix=mix, loss=loss)
    (found,) = _found(tmp_path, body)
    assert marked(body) in [label.span.line for label in found.labels]


@pytest.mark.parametrize("case", RIGHT)
def test_other_noise_is_left_alone(tmp_path: Path, case: str) -> None:
    mix, loss = RIGHT[case]
    assert [each.text for each in _found(tmp_path, DIFFUSION.format(mix=mix, loss=loss))] == []
