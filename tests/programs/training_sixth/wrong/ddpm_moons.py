"""Denoising diffusion on two moons with samples drawn during training."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def two_moons(n):
    half = n // 2
    a = torch.rand(half) * math.pi
    b = torch.rand(n - half) * math.pi
    upper = torch.stack([a.cos(), a.sin()], dim=1)
    lower = torch.stack([1 - b.cos(), 0.5 - b.sin()], dim=1)
    return torch.cat([upper, lower]) - torch.tensor([0.5, 0.25]) + 0.05 * torch.randn(n, 2)


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freqs", torch.exp(-math.log(1000) * torch.arange(dim // 2) / (dim // 2)))

    def forward(self, t):
        angle = t[:, None].float() * self.freqs
        return torch.cat([angle.sin(), angle.cos()], dim=1)


class Denoiser(nn.Module):
    def __init__(self, hidden=64, t_dim=16, p=0.1):
        super().__init__()
        self.embed = TimeEmbedding(t_dim)
        self.net = nn.Sequential(
            nn.Linear(2 + t_dim, hidden), nn.SiLU(), nn.Dropout(p),
            nn.Linear(hidden, hidden), nn.SiLU(), nn.Dropout(p),
            nn.Linear(hidden, 2),
        )

    def forward(self, x, t):
        return self.net(torch.cat([x, self.embed(t)], dim=1))


class Diffusion:
    def __init__(self, model, steps=50):
        self.model = model
        self.steps = steps
        self.betas = torch.linspace(1e-3, 0.15, steps)
        self.alphas = 1 - self.betas
        self.alpha_bar = torch.cumprod(self.alphas, dim=0)

    def loss(self, x0):
        t = torch.randint(0, self.steps, (x0.size(0),))
        noise = torch.randn_like(x0)
        ab = self.alpha_bar[t].unsqueeze(1)
        xt = ab.sqrt() * x0 + (1 - ab).sqrt() * noise
        return F.mse_loss(self.model(xt, t), noise)

    @torch.no_grad()
    def sample(self, n):
        self.model.eval()
        x = torch.randn(n, 2)
        for i in reversed(range(self.steps)):
            t = torch.full((n,), i)
            eps = self.model(x, t)
            mean = (x - self.betas[i] / (1 - self.alpha_bar[i]).sqrt() * eps) / self.alphas[i].sqrt()
            x = mean + self.betas[i].sqrt() * torch.randn_like(x) if i > 0 else mean
        return x


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


torch.manual_seed(6)
data = two_moons(2000)
model = Denoiser()
diffusion = Diffusion(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
model.train()
for step in range(600):
    batch = data[torch.randint(0, data.size(0), (256,))]
    loss = diffusion.loss(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 0:
        samples = diffusion.sample(256)
        print(f"step {step} loss {loss.item():.3f} energy distance {energy_distance(samples, data[:256]):.4f}")
