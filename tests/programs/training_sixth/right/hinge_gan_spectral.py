"""Hinge GAN with spectral normalisation on four Gaussians."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm


def real_batch(n):
    centers = torch.tensor([[1.5, 0.0], [-1.5, 0.0], [0.0, 1.5], [0.0, -1.5]])
    return centers[torch.randint(0, 4, (n,))] + 0.1 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self, latent=6, hidden=48):
        super().__init__()
        self.latent = latent
        self.net = nn.Sequential(
            nn.Linear(latent, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            spectral_norm(nn.Linear(2, hidden)), nn.LeakyReLU(0.1),
            spectral_norm(nn.Linear(hidden, hidden)), nn.LeakyReLU(0.1),
            spectral_norm(nn.Linear(hidden, 1)),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def d_step(gen, disc, opt_d, n):
    z = torch.randn(n, gen.latent)
    fake = gen(z).detach()
    loss = F.relu(1 - disc(real_batch(n))).mean() + F.relu(1 + disc(fake)).mean()
    opt_d.zero_grad()
    loss.backward()
    opt_d.step()
    return loss.item()


def g_step(gen, disc, opt_g, n):
    fake = gen(torch.randn(n, gen.latent))
    loss = -disc(fake).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()
    return loss.item()


def nearest_mode_distance(x):
    centers = torch.tensor([[1.5, 0.0], [-1.5, 0.0], [0.0, 1.5], [0.0, -1.5]])
    return torch.cdist(x, centers).min(dim=1).values.mean().item()


torch.manual_seed(1)
gen, disc = Generator(), Discriminator()
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(disc.parameters(), lr=2e-3, betas=(0.5, 0.9))
for it in range(500):
    for _ in range(2):
        d_loss = d_step(gen, disc, opt_d, 128)
    g_loss = g_step(gen, disc, opt_g, 128)
    if it % 100 == 0:
        gen.eval()
        with torch.no_grad():
            samples = gen(torch.randn(256, gen.latent))
        gen.train()
        print(f"it {it} d {d_loss:.3f} g {g_loss:.3f} distance {nearest_mode_distance(samples):.3f}")
