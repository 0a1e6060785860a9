import io
import math

import numpy as np
import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(
            nn.Linear(self.half, width), nn.SiLU(), nn.Linear(width, 2 * (dim - self.half)))

    def forward(self, v):
        a, b = v[:, :self.half], v[:, self.half:]
        shift, scale = self.net(a).chunk(2, dim=1)
        scale = torch.tanh(scale)
        return torch.cat([a, b * scale.exp() + shift], 1), scale.sum(1)


class Flow(nn.Module):
    def __init__(self, dim=6, depth=4, width=24):
        super().__init__()
        self.blocks = nn.ModuleList(Coupling(dim, width) for _ in range(depth))
        self.orders = [torch.from_numpy(np.random.permutation(dim)) for _ in range(depth)]

    def log_prob(self, v):
        total = 0.0
        for block, order in zip(self.blocks, self.orders):
            v, ld = block(v[:, order])
            total = total + ld
        base = -0.5 * (v.square() + math.log(2 * math.pi)).sum(1)
        return base + total


def sample(n):
    t = torch.rand(n) * math.pi
    ring = torch.stack([t.cos(), t.sin(), (2 * t).cos(), t - 1.5], 1)
    extra = ring[:, :2] * ring[:, 2:]
    return torch.cat([ring, extra], 1) + 0.1 * torch.randn(n, 6)


torch.manual_seed(0)
np.random.seed(0)
flow = Flow()
opt = torch.optim.Adam(flow.parameters(), lr=5e-3)
for k in range(200):
    nll = -flow.log_prob(sample(128)).mean()
    opt.zero_grad(set_to_none=True)
    nll.backward()
    opt.step()
    if (k + 1) % 50 == 0:
        print(f"step {k + 1} nll {nll.item():.3f}")

blob = io.BytesIO()
torch.save(flow.state_dict(), blob)
blob.seek(0)

served = Flow()
served.load_state_dict(torch.load(blob))
with torch.no_grad():
    fresh = sample(512)
    print(f"served nll {-served.log_prob(fresh).mean().item():.3f}")
