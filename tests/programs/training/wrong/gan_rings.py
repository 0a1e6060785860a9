"""GAN on two concentric rings."""
import math

import torch
from torch import nn

LATENT = 8
STEPS = 150
BATCH = 64


def sample_rings(n, gen):
    angle = 2 * math.pi * torch.rand(n, generator=gen)
    radius = torch.where(torch.rand(n, generator=gen) < 0.5, torch.tensor(1.0), torch.tensor(2.0))
    pts = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return pts + 0.05 * torch.randn(n, 2, generator=gen)


def mlp(inp, hidden, out):
    return nn.Sequential(
        nn.Linear(inp, hidden),
        nn.LeakyReLU(0.2),
        nn.Linear(hidden, hidden),
        nn.LeakyReLU(0.2),
        nn.Linear(hidden, out),
    )


def train():
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(2)
    generator = mlp(LATENT, 48, 2)
    discriminator = mlp(2, 48, 1)
    g_opt = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    d_opt = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

    for step in range(STEPS):
        real = sample_rings(BATCH, gen)
        noise = torch.randn(BATCH, LATENT, generator=gen)
        fake = generator(noise).detach()

        d_loss = bce(discriminator(real), ones) + bce(discriminator(fake), zeros)
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()

        g_loss = bce(discriminator(fake), ones)
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()

        if step % 50 == 0:
            print(f"step {step:4d} d_loss {d_loss.item():.3f} g_loss {g_loss.item():.3f}")

    with torch.no_grad():
        pts = generator(torch.randn(512, LATENT, generator=gen))
    print(f"mean radius of samples {pts.norm(dim=1).mean():.3f}")
    return generator, discriminator


if __name__ == "__main__":
    train()
