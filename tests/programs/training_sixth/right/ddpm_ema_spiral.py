"""Diffusion model with an EMA copy that is used only for sampling."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class EMA:
    def __init__(self, model, decay=0.99):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay
        self.count = 0

    @torch.no_grad()
    def update(self, source):
        self.count += 1
        decay = min(self.decay, (1 + self.count) / (10 + self.count))
        for mine, theirs in zip(self.model.parameters(), source.parameters()):
            mine.lerp_(theirs, 1 - decay)
        for mine, theirs in zip(self.model.buffers(), source.buffers()):
            mine.copy_(theirs)


class Net(nn.Module):
    def __init__(self, hidden=64, steps=40):
        super().__init__()
        self.time = nn.Embedding(steps, 16)
        self.inp = nn.Linear(2 + 16, hidden)
        self.mid = nn.Sequential(nn.SiLU(), nn.Dropout(0.05), nn.Linear(hidden, hidden), nn.SiLU())
        self.out = nn.Linear(hidden, 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        return self.out(self.mid(self.inp(torch.cat([x, self.time(t)], dim=1))))


def schedule(steps):
    betas = torch.linspace(2e-3, 0.2, steps)
    return betas, torch.cumprod(1 - betas, dim=0)


def spiral(n):
    r = torch.rand(n).sqrt() * 2
    a = r * 2.5
    return torch.stack([r * a.cos(), r * a.sin()], dim=1) + 0.03 * torch.randn(n, 2)


@torch.no_grad()
def sample(net, n, betas, alpha_bar):
    x = torch.randn(n, 2)
    for i in range(len(betas) - 1, -1, -1):
        t = torch.full((n,), i)
        eps = net(x, t)
        x = (x - betas[i] / (1 - alpha_bar[i]).sqrt() * eps) / (1 - betas[i]).sqrt()
        if i:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x


torch.manual_seed(4)
steps = 40
betas, alpha_bar = schedule(steps)
data = spiral(2000)
net = Net(steps=steps)
ema = EMA(net)
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
lr_schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=500)
for step in range(500):
    x0 = data[torch.randint(0, data.size(0), (200,))]
    t = torch.randint(0, steps, (x0.size(0),))
    noise = torch.randn_like(x0)
    a = alpha_bar[t].unsqueeze(1)
    loss = F.mse_loss(net(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    lr_schedule.step()
    ema.update(net)
    if step % 125 == 0:
        x = sample(ema.model, 200, betas, alpha_bar)
        gap = torch.cdist(x, data).min(dim=1).values.mean().item()
        print(f"step {step} loss {loss.item():.3f} distance to data {gap:.3f}")
