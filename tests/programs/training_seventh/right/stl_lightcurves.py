"""Latent-variable model of variable-star light curves, amortized Gaussian posterior, path-gradient ELBO."""
import math

import torch
from torch import nn

GRID = 30
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def log_normal(x, mean, scale):
    return -0.5 * ((x - mean) / scale) ** 2 - scale.log() - HALF_LOG_2PI


class Inference(nn.Module):
    def __init__(self, latent=4, width=64):
        super().__init__()
        self.gru = nn.GRU(2, 24, batch_first=True)
        self.mean = nn.Linear(24, latent)
        self.scale = nn.Linear(24, latent)

    def forward(self, flux, seen):
        _, h = self.gru(torch.stack([flux * seen, seen], dim=-1))
        return self.mean(h[0]), nn.functional.softplus(self.scale(h[0])) + 1e-3


class Emission(nn.Module):
    def __init__(self, latent=4, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(latent, width), nn.Tanh(), nn.Linear(width, GRID))
        self.log_noise = nn.Parameter(torch.tensor(-0.5))

    def forward(self, z):
        return self.net(z), self.log_noise.exp()


def light_curves(n, gen):
    t = torch.linspace(0, 2 * math.pi, GRID)
    phase = 2 * math.pi * torch.rand(n, 1, generator=gen)
    amp = 0.5 + torch.rand(n, 1, generator=gen)
    skew = 0.5 * torch.rand(n, 1, generator=gen)
    flux = amp * (torch.sin(t + phase) + skew * torch.sin(2 * t + 2 * phase))
    flux = flux + 0.1 * torch.randn(n, GRID, generator=gen)
    seen = (torch.rand(n, GRID, generator=gen) > 0.3).float()
    return flux, seen


def objective(inference, emission, flux, seen, gen):
    mean, scale = inference(flux, seen)
    z = mean + scale * torch.randn(mean.shape, generator=gen)
    curve, noise = emission(z)
    log_lik = (seen * log_normal(flux, curve, noise)).sum(1)
    log_prior = log_normal(z, torch.zeros(()), torch.ones(())).sum(1)
    log_post = log_normal(z, mean.detach(), scale.detach()).sum(1)
    return (log_lik + log_prior - log_post).mean()


def fill_in_error(inference, emission, flux, seen):
    with torch.no_grad():
        mean, _ = inference(flux, seen)
        curve, _ = emission(mean)
        hidden = 1 - seen
        return (((curve - flux) ** 2 * hidden).sum() / hidden.sum()).sqrt().item()


def run(iterations=420, batch=64):
    torch.manual_seed(15)
    gen = torch.Generator().manual_seed(2)
    flux, seen = light_curves(1500, gen)
    held = light_curves(300, gen)
    inference, emission = Inference(), Emission()
    opt = torch.optim.Adam([*inference.parameters(), *emission.parameters()], lr=6e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=iterations)
    for i in range(iterations):
        pick = torch.randint(0, len(flux), (batch,), generator=gen)
        elbo = objective(inference, emission, flux[pick], seen[pick], gen)
        opt.zero_grad()
        (-elbo).backward()
        nn.utils.clip_grad_norm_([*inference.parameters(), *emission.parameters()], 50.0)
        opt.step()
        sched.step()
        if i % 70 == 0:
            print(f"{i:4d}  elbo {elbo.item():.2f}  noise {emission.log_noise.exp().item():.3f}")
    print(f"rmse on unseen points {fill_in_error(inference, emission, *held):.3f}")


if __name__ == "__main__":
    run()
