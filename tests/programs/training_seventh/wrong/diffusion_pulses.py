"""Denoising diffusion for short pulse trains with averaged weights; previews are scored while training goes on."""
import contextlib
import math

import torch
import torch.nn.functional as F
from torch import nn

LENGTH, STEPS = 24, 40


class Averaged:
    def __init__(self, model, decay=0.995):
        self.decay, self.count = decay, 0
        self.params = list(model.parameters())
        self.mean = [p.detach().clone() for p in self.params]

    @torch.no_grad()
    def update(self):
        self.count += 1
        d = min(self.decay, (1 + self.count) / (10 + self.count))
        for m, p in zip(self.mean, self.params):
            m.lerp_(p, 1 - d)

    @contextlib.contextmanager
    def in_use(self):
        live = [p.data for p in self.params]
        for p, m in zip(self.params, self.mean):
            p.data.copy_(m)
        try:
            yield
        finally:
            for p, saved in zip(self.params, live):
                p.data.copy_(saved)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.register_buffer("freq", torch.exp(torch.linspace(0, 4, 8)))
        self.inp = nn.Linear(LENGTH, width)
        self.time = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, 2 * width))
        self.mid = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.out = nn.Linear(width, LENGTH)

    def forward(self, x, t):
        angle = (t.float() / STEPS)[:, None] * self.freq
        scale, shift = self.time(torch.cat([angle.sin(), angle.cos()], 1)).chunk(2, 1)
        h = F.silu(self.inp(x)) * (1 + scale) + shift
        return self.out(F.silu(h + self.mid(h)))


class Schedule:
    def __init__(self):
        s = torch.linspace(0, 1, STEPS + 1)
        bar = torch.cos((s + 0.01) / 1.01 * math.pi / 2) ** 2
        self.bar = (bar / bar[0]).clamp(min=1e-3)[1:]
        self.alpha = self.bar / torch.cat([torch.ones(1), self.bar[:-1]])

    def noisy(self, x, t, eps):
        b = self.bar[t][:, None]
        return b.sqrt() * x + (1 - b).sqrt() * eps


def pulse_trains(n, gen):
    t = torch.arange(LENGTH).float()
    start = 3 + 4 * torch.rand(n, 1, generator=gen)
    gap = 6 + 3 * torch.rand(n, 1, generator=gen)
    x = sum(torch.exp(-0.5 * ((t - start - k * gap) / 1.2) ** 2) for k in range(3))
    return 2 * x - 0.6


@torch.no_grad()
def sample(model, schedule, n, gen):
    x = torch.randn(n, LENGTH, generator=gen)
    for t in reversed(range(STEPS)):
        a, b = schedule.alpha[t], schedule.bar[t]
        eps = model(x, torch.full((n,), t))
        x = (x - (1 - a) / (1 - b).sqrt() * eps) / a.sqrt()
        if t:
            x = x + (1 - a).sqrt() * torch.randn(x.shape, generator=gen)
    return x


def distance(a, b):
    """Mean distance of a sample to its nearest real train."""
    return torch.cdist(a, b).min(dim=1).values.mean().item()


def train(model, data, reference, iterations=900, batch=64, preview_every=25):
    schedule, average = Schedule(), Averaged(model)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    gen, losses, previews = torch.Generator().manual_seed(50), [], []
    for i in range(iterations):
        x = data[torch.randint(0, len(data), (batch,), generator=gen)]
        t = torch.randint(0, STEPS, (batch,), generator=gen)
        eps = torch.randn(x.shape, generator=gen)
        loss = F.mse_loss(model(schedule.noisy(x, t, eps), t), eps)
        opt.zero_grad()
        loss.backward()
        opt.step()
        average.update()
        losses.append(loss.item())
        if i % preview_every == preview_every - 1:
            with average.in_use():
                previews.append(distance(sample(model, schedule, 64, torch.Generator().manual_seed(0)), reference))
        if i % 180 == 179:
            print(f"{i:4d}  loss {sum(losses[-60:]) / 60:.3f}  preview distance {previews[-1]:.3f}")
    return average, losses, previews


if __name__ == "__main__":
    torch.manual_seed(18)
    data_gen = torch.Generator().manual_seed(4)
    data, reference = pulse_trains(1500, data_gen), pulse_trains(500, data_gen)
    model = Denoiser()
    average, losses, previews = train(model, data, reference)
    print(f"final preview distance {previews[-1]:.3f}  last losses {sum(losses[-100:]) / 100:.3f}")
