"""DDPM on a two-dimensional ring mixture, with an exponential moving average of the weights for sampling."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)

STEPS, MODES = 40, 8


def ring_mixture(n):
    angle = torch.randint(0, MODES, (n,)).float() * (2 * math.pi / MODES)
    centres = torch.stack([angle.cos(), angle.sin()], dim=1) * 1.5
    return centres + 0.08 * torch.randn(n, 2)


class Denoiser(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.register_buffer("freqs", torch.exp(torch.linspace(0, -4, 8)))
        self.net = nn.Sequential(
            nn.Linear(2 + 16, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x, t):
        arg = t.float().unsqueeze(1) * self.freqs
        return self.net(torch.cat([x, arg.sin(), arg.cos()], dim=1))


class ExponentialMovingAverage:
    """Shadow weights; store / copy_to / restore around an evaluation."""

    def __init__(self, parameters, decay):
        self.decay = decay
        self.shadow = [p.detach().clone() for p in parameters]
        self.backup = None

    @torch.no_grad()
    def update(self, parameters):
        for s, p in zip(self.shadow, parameters):
            s.lerp_(p, 1.0 - self.decay)

    def store(self, parameters):
        self.backup = [p.detach() for p in parameters]

    @torch.no_grad()
    def copy_to(self, parameters):
        for s, p in zip(self.shadow, parameters):
            p.copy_(s)

    @torch.no_grad()
    def restore(self, parameters):
        for b, p in zip(self.backup, parameters):
            p.copy_(b)
        self.backup = None


betas = torch.linspace(1e-3, 0.2, STEPS)
alphas = 1.0 - betas
alpha_bar = torch.cumprod(alphas, dim=0)


def denoising_loss(model, x0, t, noise):
    a = alpha_bar[t].unsqueeze(1)
    return F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 2)
    for step in reversed(range(STEPS)):
        eps = model(x, torch.full((n,), step))
        x = (x - betas[step] / (1 - alpha_bar[step]).sqrt() * eps) / alphas[step].sqrt()
        if step > 0:
            x = x + betas[step].sqrt() * torch.randn_like(x)
    return x


train_x, valid_x = ring_mixture(4096), ring_mixture(2048)
valid_t = torch.randint(0, STEPS, (2048,))
valid_noise = torch.randn(2048, 2)

model = Denoiser()
ema = ExponentialMovingAverage(model.parameters(), decay=0.99)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for it in range(1, 1501):
    x0 = train_x[torch.randint(0, len(train_x), (128,))]
    loss = denoising_loss(model, x0, torch.randint(0, STEPS, (128,)), torch.randn(128, 2))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model.parameters())
    if it % 25 == 0:
        ema.store(model.parameters())
        ema.copy_to(model.parameters())
        with torch.no_grad():
            valid = denoising_loss(model, valid_x, valid_t, valid_noise).item()
        if it % 300 == 0:
            off_ring = (sample(model, 512).norm(dim=1) - 1.5).abs().mean().item()
            print(f"iter {it}: ema valid loss {valid:.4f}  distance from ring {off_ring:.3f}")
        ema.restore(model.parameters())
