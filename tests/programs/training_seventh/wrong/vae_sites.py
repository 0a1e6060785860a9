"""A VAE over beat-to-beat pulse shapes pooled from four clinics, half-precision forward, one micro-batch per clinic."""
import math

import torch
import torch.nn.functional as F
from torch import nn

POINTS = 40


class PulseVAE(nn.Module):
    def __init__(self, latent=6, width=64):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(POINTS, width), nn.GELU(), nn.Linear(width, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, width), nn.GELU(), nn.Linear(width, POINTS))

    def forward(self, x, gen=None):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu
        if gen is not None:
            z = mu + torch.randn(mu.shape, generator=gen) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def elbo_loss(out, x, beta):
    recon, mu, logvar = (t.float() for t in out)
    fit = F.mse_loss(recon, x, reduction="none").sum(1)
    kl = 0.5 * (mu ** 2 + logvar.exp() - logvar - 1).sum(1)
    return (fit + beta * kl).mean()


class HalfPrecision:
    """Static loss scaling around a bfloat16 forward."""

    def __init__(self, params, scale=2.0 ** 10):
        self.params, self.scale = list(params), scale
        self.skipped = 0

    def backward(self, loss):
        (loss * self.scale).backward()
        for p in self.params:
            if p.grad is not None:
                p.grad.div_(self.scale)

    def step(self, opt):
        finite = all(torch.isfinite(p.grad).all() for p in self.params if p.grad is not None)
        if finite:
            opt.step()
        else:
            self.skipped += 1


def clinic(index, n, gen):
    t = torch.linspace(0, 1, POINTS)
    peak = 0.15 + 0.2 * index + 0.03 * torch.randn(n, 1, generator=gen)
    width = 0.05 + 0.02 * torch.rand(n, 1, generator=gen)
    notch = 0.4 * torch.exp(-0.5 * ((t - peak - 0.15) / 0.04) ** 2)
    amp = 1 + 0.2 * torch.randn(n, 1, generator=gen)
    return amp * (torch.exp(-0.5 * ((t - peak) / width) ** 2) + notch) + 0.03 * torch.randn(n, POINTS, generator=gen)


def accumulate(model, half, chunks, gen, beta):
    total = 0.0
    for x in chunks:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x, gen)
        loss = elbo_loss(out, x, beta) / len(chunks)
        half.backward(loss)
        total += loss.item()
    return total


def train(model, clinics, updates=300, micro=24, seed=0):
    gen = torch.Generator().manual_seed(seed)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    half = HalfPrecision(model.parameters())
    for u in range(updates):
        beta = 0.02 * min(1.0, u / 100)
        chunks = [data[torch.randint(0, len(data), (micro,), generator=gen)] for data in clinics]
        opt.zero_grad()
        loss = accumulate(model, half, chunks, gen, beta)
        half.step(opt)
        if u % 60 == 0:
            print(f"update {u:4d}  loss {loss:.3f}")
    return half


def reconstruction(model, x):
    with torch.no_grad():
        return F.mse_loss(model(x)[0], x).item()


if __name__ == "__main__":
    torch.manual_seed(3)
    data_gen = torch.Generator().manual_seed(40)
    clinics = [clinic(i, 400, data_gen) for i in range(4)]
    held = [clinic(i, 150, data_gen) for i in range(4)]
    model = PulseVAE()
    half = train(model, clinics)
    errors = [reconstruction(model, x) for x in held]
    print("mean reconstruction error", round(sum(errors) / 4, 4), "skipped", half.skipped)
