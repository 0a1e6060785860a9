import math
import torch
from torch import nn

torch.manual_seed(37)


class Fourier(nn.Module):
    def __init__(self, freqs):
        super().__init__()
        self.register_buffer("freqs", freqs)

    def forward(self, xy):
        phase = (xy[..., None] * self.freqs).flatten(1)
        return torch.cat([phase.sin(), phase.cos()], dim=1)


class Tower(nn.Module):
    def __init__(self, freqs, width=24):
        super().__init__()
        self.bank = Fourier(freqs)
        self.body = nn.Sequential(nn.Linear(4 * len(freqs), width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, xy):
        return self.body(self.bank(xy))


def build(scales):
    towers = nn.ModuleDict()
    freqs = math.pi * torch.tensor([1.0, 1.3])
    for scale in scales:
        torch.mul(freqs, scale, out=freqs)
        towers[f"x{scale}"] = Tower(freqs.clone())
    return towers


def plate(xy):
    x, y = xy.unbind(1)
    return torch.sin(math.pi * x) * torch.sin(math.pi * y) + 0.2 * torch.cos(6 * math.pi * x)


def sample(n=128):
    return torch.rand(n, 2)


towers = build([1, 2, 3])
opt = torch.optim.Adam(towers.parameters(), lr=5e-3)
for step in range(150):
    xy = sample()
    heat = torch.stack([t(xy) for t in towers.values()]).sum(0).squeeze(1)
    loss = (heat - plate(xy)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 29:
        print(f"step {step + 1}  loss {loss.item():.5f}")

with torch.no_grad():
    xy = torch.rand(1000, 2)
    heat = sum(t(xy) for t in towers.values()).squeeze(1)
    print(f"plate error {(heat - plate(xy)).abs().mean():.5f}")
