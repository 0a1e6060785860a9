"""Activity recognition from accelerometers, adapted from one wristband model to another (domain-adversarial)."""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

WINDOW, AXES, ACTIVITIES = 32, 3, 4


class Flip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, strength):
        ctx.strength = strength
        return features.view_as(features)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.strength, None


class Trunk(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.a = nn.Conv1d(AXES, width, 5, padding=2)
        self.b = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.c = nn.Linear(width, 24)

    def forward(self, x):
        h = F.elu(self.b(F.elu(self.a(x))))
        return F.elu(self.c(h.mean(-1)))


class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = Trunk()
        self.activity = nn.Linear(24, ACTIVITIES)
        self.device_of = nn.Sequential(nn.Linear(24, 32), nn.ELU(), nn.Linear(32, 2))

    def forward(self, x, strength):
        z = self.trunk(x)
        return self.activity(z), self.device_of(Flip.apply(z, strength))


def record(n, device_id, rng):
    y = rng.integers(0, ACTIVITIES, n)
    t = np.arange(WINDOW) / WINDOW
    freq = 1.0 + y[:, None, None]
    phase = rng.uniform(0, 2 * math.pi, (n, AXES, 1))
    x = np.sin(2 * math.pi * freq * t + phase) * rng.uniform(0.6, 1.4, (n, 1, 1))
    x = x + 0.4 * rng.standard_normal(x.shape)
    if device_id == 1:
        x = 0.6 * x + np.array([0.5, -0.3, 0.2])[None, :, None]
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def ramp(progress):
    return 2.0 / (1.0 + math.exp(-6.0 * progress)) - 1.0


def accuracy(net, x, y):
    with torch.no_grad():
        return (net(x, 0.0)[0].argmax(1) == y).float().mean().item()


def adapt(net, source, target_x, steps=300, batch=40):
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=5e-4)
    gen = torch.Generator().manual_seed(3)
    src_x, src_y = source
    side = torch.cat([torch.zeros(batch), torch.ones(batch)]).long()
    for i in range(steps):
        lam = 0.2 * ramp(i / steps)
        for group in opt.param_groups:
            group["lr"] = 4e-3 / (1 + 5 * i / steps) ** 0.75
        a = torch.randint(0, len(src_x), (batch,), generator=gen)
        b = torch.randint(0, len(target_x), (batch,), generator=gen)
        act, dev = net(torch.cat([src_x[a], target_x[b]]), lam)
        task = F.cross_entropy(act[:batch], src_y[a])
        domain = F.cross_entropy(dev, side)
        opt.zero_grad()
        (task + domain).backward()
        opt.step()
        if i % 60 == 0:
            print(f"{i:4d}  task {task.item():.3f}  domain {domain.item():.3f}  lambda {lam:.2f}")


def main():
    torch.manual_seed(2)
    rng = np.random.default_rng(8)
    source = record(800, 0, rng)
    target_x, _ = record(800, 1, rng)
    held_x, held_y = record(400, 1, rng)
    net = Adapter()
    adapt(net, source, target_x)
    print(f"source {accuracy(net, *source):.3f}   other wristband {accuracy(net, held_x, held_y):.3f}")


if __name__ == "__main__":
    main()
