import math
from contextlib import contextmanager

import torch
import torch.nn as nn

torch.manual_seed(52)
ARMS, BINS, NULL = 3, 10, 3


def make_data(count):
    arm = torch.randint(ARMS, (count,))
    radius = torch.rand(count).sqrt() * 1.6 + 0.4
    angle = 1.2 * radius + 2 * math.pi * arm / ARMS
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1) + 0.05 * torch.randn(count, 2), arm


class Velocity(nn.Module):
    """Velocity field of a conditional flow; the last layer starts at zero."""

    def __init__(self, width=96):
        super().__init__()
        self.register_buffer("rates", 2 * math.pi * torch.arange(1, 5).float())
        self.arm = nn.Embedding(ARMS + 1, 16)
        self.net = nn.Sequential(nn.Linear(2 + 8 + 16, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))
        for p in self.net[-1].parameters():
            nn.init.zeros_(p)

    def forward(self, x, time, arm):
        phase = time[:, None] * self.rates
        return self.net(torch.cat([x, phase.sin(), phase.cos(), self.arm(arm)], dim=1))


class Average:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model, step):
        for name, p in model.named_parameters():
            self.shadow[name].lerp_(p, 1 - min(self.decay, (1 + step) / (10 + step)))

    @contextmanager
    def applied(self, model):
        kept = {name: p.data for name, p in model.named_parameters()}
        for name, p in model.named_parameters():
            p.data = self.shadow[name]
        try:
            yield model
        finally:
            for name, p in model.named_parameters():
                p.data = kept[name]


class TimeSampler:
    """Draws times where the error has been large lately, and returns the weights that undo the preference."""

    def __init__(self):
        self.level = torch.ones(BINS)

    def draw(self, count):
        chance = 0.5 * self.level / self.level.sum() + 0.5 / BINS
        slot = torch.multinomial(chance, count, replacement=True)
        return (slot + torch.rand(count)) / BINS, slot, 1 / (BINS * chance[slot])

    @torch.no_grad()
    def note(self, slot, error):
        total = torch.zeros(BINS).index_add_(0, slot, error)
        number = torch.bincount(slot, minlength=BINS)
        mean = torch.where(number > 0, total / number.clamp(min=1), self.level)
        self.level.mul_(0.95).add_(mean, alpha=0.05)


@torch.no_grad()
def sample(model, arm, steps=40, guidance=1.3):
    x = torch.randn(len(arm), 2)
    for i in range(steps):
        time = torch.full((len(arm),), i / steps)
        free = model(x, time, torch.full_like(arm, NULL))
        x += (free + guidance * (model(x, time, arm) - free)) / steps
    return x


points, arms = make_data(4000)
model, sampler = Velocity(), TimeSampler()
average = Average(model, 0.995)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(1500):
    idx = torch.randint(len(points), (256,))
    data, noise = points[idx], torch.randn(256, 2)
    arm = arms[idx].masked_fill(torch.rand(256) < 0.15, NULL)
    time, slot, weight = sampler.draw(256)
    x = torch.lerp(noise, data, time[:, None])
    error = (model(x, time, arm) - (data - noise)).square().mean(1)
    loss = (weight * error).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    sampler.note(slot, error)
    average.update(model, step)

wanted = torch.arange(ARMS).repeat(200)
with average.applied(model):
    made = sample(model, wanted)
real, real_arm = make_data(3000)
gap, nearest = torch.cdist(made, real).min(1)
print(f"loss {loss.item():.3f}  distance to data {gap.mean().item():.3f}  "
      f"right arm {(real_arm[nearest] == wanted).float().mean().item():.3f}")
