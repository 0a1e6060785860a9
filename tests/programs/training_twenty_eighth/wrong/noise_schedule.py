"""Denoising diffusion on short periodic signals, with the min-SNR weighting of the timesteps."""
import math

import torch
import torch.nn.functional as F
from torch import nn

LENGTH = 16


def signals(n):
    time = torch.linspace(0, 1, LENGTH)
    frequency = torch.randint(1, 3, (n, 1)).float()
    phase = 2 * math.pi * torch.rand(n, 1)
    return torch.sin(2 * math.pi * frequency * time + phase)


def cosine_alpha_bar(steps, offset=0.008):
    grid = torch.linspace(0, 1, steps + 1, dtype=torch.float64)
    curve = torch.cos((grid + offset) / (1 + offset) * math.pi / 2) ** 2
    betas = (1 - curve[1:] / curve[:-1]).clamp(max=0.999)
    return torch.cumprod(1 - betas, dim=0).float()


class TimeEmbedding(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        half = dim // 2
        self.register_buffer("rates", torch.exp(-math.log(1000.0) * torch.arange(half) / half))

    def forward(self, t):
        angles = t.float()[:, None] * self.rates
        return torch.cat([angles.sin(), angles.cos()], dim=1)


class Denoiser(nn.Module):
    def __init__(self, hidden=128, time_dim=32):
        super().__init__()
        self.embed = nn.Sequential(TimeEmbedding(time_dim), nn.Linear(time_dim, hidden), nn.SiLU())
        self.inp = nn.Linear(LENGTH, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, LENGTH)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.embed(t))
        h = h + F.silu(self.mid(h))
        return self.out(h)


class Diffusion(nn.Module):
    def __init__(self, steps=100, gamma=5.0):
        super().__init__()
        self.steps = steps
        self.gamma = gamma
        self.net = Denoiser()
        self.register_buffer("alpha_bar", cosine_alpha_bar(steps))

    def corrupt(self, x0, t, noise):
        ab = self.alpha_bar[t].unsqueeze(1)
        return ab.sqrt() * x0 + (1 - ab).sqrt() * noise, ab

    def loss(self, x0):
        t = torch.randint(self.steps, (len(x0),), device=x0.device)
        noise = torch.randn_like(x0)
        xt, ab = self.corrupt(x0, t, noise)
        error = F.mse_loss(self.net(xt, t), noise, reduction="none").mean(dim=1)
        snr = ab / (1 - ab)
        weight = snr.clamp(max=self.gamma) / snr
        return (weight * error).mean()

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, LENGTH)
        for i in reversed(range(self.steps)):
            t = torch.full((n,), i)
            ab = self.alpha_bar[i]
            previous = self.alpha_bar[i - 1] if i > 0 else torch.ones(())
            eps = self.net(x, t)
            x0 = ((x - (1 - ab).sqrt() * eps) / ab.sqrt()).clamp(-1.2, 1.2)
            eps = (x - ab.sqrt() * x0) / (1 - ab).sqrt()
            x = previous.sqrt() * x0 + (1 - previous).sqrt() * eps
        return x


def train(model, data, steps=400, batch=192, lr=4e-3):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-4)
    for step in range(1, steps + 1):
        x0 = data[torch.randint(len(data), (batch,))]
        loss = model.loss(x0)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(21)
    data = signals(4096)
    model = Diffusion()
    train(model, data)
    drawn = model.sample(256)
    print(f"sample std {drawn.std().item():.3f}  data std {data.std().item():.3f}")
    distance = torch.cdist(drawn, data).min(dim=1).values.mean().item()
    print(f"mean distance of a sample to its nearest signal: {distance:.3f}")
