"""A GAN with the non-saturating loss and lazy R1 regularisation (Mescheder et al., 2018; Karras et al., 2020).

The data are one-dimensional spectra with one peak; the generator that is judged is the running average of the trained
one.  The penalty is worked out every eighth step only, and weighted by eight.
"""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)
torch.set_num_threads(1)

CHANNELS, NOISE, EVERY, GAMMA = 32, 8, 8, 0.2


def spectra(n):
    grid = torch.linspace(-1, 1, CHANNELS)
    centre = torch.rand(n, 1) * 1.2 - 0.6
    width = 0.12 + 0.1 * torch.rand(n, 1)
    return torch.exp(-0.5 * ((grid - centre) / width) ** 2) + 0.02 * torch.randn(n, CHANNELS)


class Generator(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(NOISE, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2),
            nn.Linear(width, CHANNELS))

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(CHANNELS, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2),
            nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def r1_penalty(critic, real):
    real = real.detach().requires_grad_(True)
    slope, = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
    return slope.pow(2).sum(1).mean()


@torch.no_grad()
def average(slow, fast, decay=0.995):
    for a, b in zip(slow.parameters(), fast.parameters()):
        a.copy_(b.lerp(a, decay))


@torch.no_grad()
def report(generator):
    """Distance of the generated spectra to the nearest of many real ones, and the spread of the peak positions."""
    made, real = generator(torch.randn(500, NOISE)), spectra(3000)
    nearest = torch.cdist(made, real).min(1).values.mean().item()
    place = made.argmax(1).float() / (CHANNELS - 1) * 2 - 1
    return nearest, place.std().item()


def main():
    generator, critic = Generator(), Critic()
    judged = copy.deepcopy(generator).eval().requires_grad_(False)
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.99))
    ratio = EVERY / (EVERY + 1)
    c_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3 * ratio, betas=(0.0, 0.99 ** ratio))

    for step in range(1201):
        # critic, first the adversarial part and now and then a step for the penalty alone
        real = spectra(64)
        with torch.no_grad():
            fake = generator(torch.randn(64, NOISE))
        c_loss = F.softplus(-critic(real)).mean() + F.softplus(critic(fake)).mean()
        c_optimizer.zero_grad()
        c_loss.backward()
        c_optimizer.step()
        if step % EVERY == 0:
            penalty = 0.5 * GAMMA * EVERY * r1_penalty(critic, real)
            c_optimizer.zero_grad()
            penalty.backward()
            c_optimizer.step()

        # generator: the gradients that this leaves in the critic are cleared before its next step
        g_loss = F.softplus(-critic(generator(torch.randn(64, NOISE)))).mean()
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        average(judged, generator)

        if step % 300 == 0:
            nearest, spread = report(judged)
            print(f"step {step:4d}  critic {c_loss.item():.3f}  generator {g_loss.item():.3f}  "
                  f"distance {nearest:.3f}  spread {spread:.3f}")
    print("real data: spread 0.346")


if __name__ == "__main__":
    main()
