import math

import torch
from torch import nn
import torch.nn.functional as F


class Denoiser(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        clock = torch.stack([torch.sin(3 * t), torch.cos(3 * t)], dim=-1)
        return self.net(torch.cat([x, clock], dim=-1))


class MovingAverage:
    def __init__(self, params, decay=0.98):
        self.params = list(params)
        self.decay = decay
        self.shadow = [p.detach().clone() for p in self.params]
        self.kept = None

    @torch.no_grad()
    def update(self):
        for s, p in zip(self.shadow, self.params):
            s.mul_(self.decay).add_(p, alpha=1 - self.decay)

    def swap_in(self):
        self.kept = [p.data for p in self.params]
        for p, s in zip(self.params, self.shadow):
            p.data.copy_(s)

    def swap_out(self):
        for p, k in zip(self.params, self.kept):
            p.data.copy_(k)
        self.kept = None


def noised(x, t, g):
    eps = torch.randn(x.shape, generator=g)
    a = torch.cos(t * math.pi / 2)[:, None]
    return a * x + (1 - a**2).sqrt() * eps, eps


def batch_loss(model, x, g):
    t = torch.rand(len(x), generator=g)
    xt, eps = noised(x, t, g)
    return F.mse_loss(model(xt, t), eps)


def validate(model, average, x):
    average.swap_in()
    with torch.no_grad():
        value = batch_loss(model, x, torch.Generator().manual_seed(99)).item()
    average.swap_out()
    return value


def train(model, data, steps=120, check_every=20):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    average = MovingAverage(model.parameters())
    g = torch.Generator().manual_seed(1)
    for step in range(1, steps + 1):
        x = data[torch.randint(0, len(data), (128,), generator=g)]
        loss = batch_loss(model, x, g)
        opt.zero_grad()
        loss.backward()
        opt.step()
        average.update()
        if step % check_every == 0:
            print(f"step {step} train {loss.item():.3f} averaged {validate(model, average, data):.3f}")
    return average


if __name__ == "__main__":
    torch.manual_seed(0)
    angle = torch.rand(1024) * 2 * math.pi
    data = torch.stack([angle.cos(), angle.sin()], dim=-1) * 1.5
    model = Denoiser()
    average = train(model, data)
