"""RealNVP density estimation on a banana-shaped two-dimensional data set, with a held-out likelihood."""
import math

import torch
import torch.nn as nn

torch.manual_seed(11)


def make_data(n):
    t = torch.rand(n) * math.pi
    top = torch.rand(n) < 0.5
    x = torch.where(top, torch.cos(t), 1.0 - torch.cos(t))
    y = torch.where(top, torch.sin(t), 0.5 - torch.sin(t))
    pts = torch.stack([x, y], 1) + 0.08 * torch.randn(n, 2)
    return (pts - torch.tensor([0.5, 0.25])) / torch.tensor([0.87, 0.5])


class Coupling(nn.Module):
    def __init__(self, dim, hidden, parity):
        super().__init__()
        mask = (torch.arange(dim) % 2 == parity).float()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(
            nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2 * dim))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def scale_shift(self, kept):
        s, t = self.net(kept).chunk(2, dim=-1)
        free = 1.0 - self.mask
        return torch.tanh(s) * free, t * free

    def forward(self, x):
        s, t = self.scale_shift(x * self.mask)
        return x * torch.exp(s) + t, s.sum()

    def inverse(self, z):
        s, t = self.scale_shift(z * self.mask)
        return (z - t) * torch.exp(-s)


class RealNVP(nn.Module):
    def __init__(self, dim=2, hidden=48, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(dim, hidden, i % 2) for i in range(depth))
        self.dim = dim

    def log_prob(self, x):
        log_det = torch.zeros(())
        for layer in self.layers:
            x, ld = layer(x)
            log_det = log_det + ld
        base = -0.5 * x.pow(2).sum(-1) - 0.5 * self.dim * math.log(2 * math.pi)
        return base + log_det

    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, self.dim)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


train, test = make_data(4000), make_data(1000)
flow = RealNVP()
optimizer = torch.optim.AdamW(flow.parameters(), lr=2e-3, weight_decay=1e-5)
steps = 900
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps)

for step in range(steps):
    batch = train[torch.randint(len(train), (128,))]
    loss = -flow.log_prob(batch).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if (step + 1) % 300 == 0:
        print(f"step {step + 1}: train nll {loss.item():.3f}")

flow.eval()
with torch.no_grad():
    held_out = -flow.log_prob(test).mean().item()
drawn = flow.sample(1000)
gap = torch.cdist(drawn, test).min(dim=1).values.mean().item()
print(f"held-out nll {held_out:.3f}")
print(f"mean distance from a drawn point to its nearest test point {gap:.3f}")
print("std of drawn points", [round(v, 3) for v in drawn.std(0).tolist()])
