import torch
from torch import nn
import torch.nn.functional as F


class SpectrumEncoder(nn.Module):
    def __init__(self, bins, latent):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(bins, 48), nn.SiLU(), nn.Linear(48, 32), nn.SiLU())
        self.loc = nn.Linear(32, latent)
        self.log_scale = nn.Linear(32, latent)

    def forward(self, x):
        h = self.body(x)
        return self.loc(h), self.log_scale(h).clamp(-5, 3)


class SpectrumVAE(nn.Module):
    def __init__(self, bins=40, latent=3):
        super().__init__()
        self.encoder = SpectrumEncoder(bins, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 32), nn.SiLU(), nn.Linear(32, bins))

    def draw(self, loc, log_scale):
        return torch.normal(loc, log_scale.exp())

    def forward(self, x):
        loc, log_scale = self.encoder(x)
        return self.decoder(self.draw(loc, log_scale)), loc, log_scale


def elbo_terms(model, x):
    recon, loc, log_scale = model(x)
    fit = F.mse_loss(recon, x, reduction="none").sum(-1).mean()
    kl = 0.5 * (loc**2 + (2 * log_scale).exp() - 1 - 2 * log_scale).sum(-1).mean()
    return fit, kl


def peaks(n, bins, g):
    axis = torch.linspace(0, 1, bins)
    centre = 0.2 + 0.6 * torch.rand(n, 1, generator=g)
    height = 1 + torch.rand(n, 1, generator=g)
    return height * torch.exp(-((axis - centre) ** 2) / 0.01)


class Annealer:
    def __init__(self, top, warmup):
        self.top, self.warmup = top, warmup

    def __call__(self, step):
        return self.top * min(1.0, (step + 1) / self.warmup)


def train(model, data, steps=80, beta=Annealer(0.1, 20)):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    g = torch.Generator().manual_seed(1)
    for step in range(steps):
        x = data[torch.randint(0, len(data), (64,), generator=g)]
        fit, kl = elbo_terms(model, x)
        opt.zero_grad()
        (fit + beta(step) * kl).backward()
        opt.step()
        if step % 20 == 19:
            print(f"{step + 1:3d} fit {fit.item():.3f} kl {kl.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    data = peaks(512, 40, torch.Generator().manual_seed(7))
    model = SpectrumVAE()
    train(model, data)
