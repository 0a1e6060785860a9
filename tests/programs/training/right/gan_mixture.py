"""GAN on a ring of Gaussians."""
import math

import torch
from torch import nn

torch.manual_seed(1)
LATENT, BATCH, STEPS = 8, 64, 150


def real_batch(n):
    k = torch.randint(8, (n,))
    angle = 2 * math.pi * k / 8
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


def net(inp, out):
    return nn.Sequential(nn.Linear(inp, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, out))


def require_grad(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


G, D = net(LATENT, 2), net(2, 1)
g_opt = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
d_opt = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

for step in range(STEPS):
    require_grad(D, True)
    fake = G(torch.randn(BATCH, LATENT))
    d_loss = criterion(D(real_batch(BATCH)), ones) + criterion(D(fake.detach()), zeros)
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()

    require_grad(D, False)
    g_loss = criterion(D(fake), ones)
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()

    if step % 50 == 49:
        print(f"step {step}: d {d_loss.item():.3f} g {g_loss.item():.3f}")

with torch.no_grad():
    radius = G(torch.randn(512, LATENT)).norm(dim=1)
print(f"radius of samples {radius.mean():.3f} +- {radius.std():.3f}")
