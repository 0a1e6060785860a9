"""WGAN-GP on a mixture of spots, sampled from an averaged generator."""
import copy
import math

import torch
from torch import nn

torch.manual_seed(6)

LATENT = 4
SPOTS = 8
N_CRITIC = 3
PENALTY = 1.0


def real_batch(n):
    angle = 2 * math.pi * torch.randint(0, SPOTS, (n,)) / SPOTS
    center = torch.stack([angle.cos(), angle.sin()], dim=1)
    return 1.5 * center + 0.08 * torch.randn(n, 2)


def make_generator():
    return nn.Sequential(
        nn.Linear(LATENT, 64), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Linear(64, 2),
    )


def make_critic():
    return nn.Sequential(
        nn.Linear(2, 64), nn.LeakyReLU(0.2),
        nn.Linear(64, 64), nn.LeakyReLU(0.2),
        nn.Linear(64, 1),
    )


@torch.no_grad()
def update_average(average, model, decay):
    for a, p in zip(average.parameters(), model.parameters()):
        a.lerp_(p, 1 - decay)


@torch.no_grad()
def refresh_norms(average, batches=20):
    """The averaged weights get batch-norm statistics of their own."""
    norms = [m for m in average.modules() if isinstance(m, nn.BatchNorm1d)]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    average.train()
    for _ in range(batches):
        average(torch.randn(256, LATENT))
    average.eval()


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    points = (mix * real + (1 - mix) * fake).requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


@torch.no_grad()
def quality(generator, n=2000):
    points = generator(torch.randn(n, LATENT))
    angle = 2 * math.pi * torch.arange(SPOTS) / SPOTS
    centers = 1.5 * torch.stack([angle.cos(), angle.sin()], dim=1)
    distance, nearest = torch.cdist(points, centers).min(1)
    close = distance < 0.4
    share = torch.bincount(nearest[close], minlength=SPOTS) / n
    return close.float().mean().item(), int((share > 0.03).sum())


def main(rounds=450, batch=128):
    generator, critic = make_generator(), make_critic()
    average = copy.deepcopy(generator).requires_grad_(False)
    g_opt = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    c_opt = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))

    for step in range(1, rounds + 1):
        critic.requires_grad_(True)
        for _ in range(N_CRITIC):
            real = real_batch(batch)
            with torch.no_grad():
                fake = generator(torch.randn(batch, LATENT))
            c_loss = critic(fake).mean() - critic(real).mean()
            c_loss = c_loss + PENALTY * gradient_penalty(critic, real, fake)
            c_opt.zero_grad()
            c_loss.backward()
            c_opt.step()

        critic.requires_grad_(False)
        g_loss = -critic(generator(torch.randn(batch, LATENT))).mean()
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
        update_average(average, generator, min(0.99, step / (step + 10)))

        if step % 150 == 0:
            refresh_norms(average)
            close, spots = quality(average)
            print(f"round {step:4d}  critic {c_loss.item():.3f}  "
                  f"near a spot {close:.3f}  spots found {spots}")
    return generator, average, close


if __name__ == "__main__":
    generator, average, close = main()
