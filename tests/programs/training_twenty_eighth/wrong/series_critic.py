"""Adversarial generation of daily sensor curves with a Wasserstein critic."""
import math

import torch
from torch import nn

LENGTH, LATENT, BATCH = 24, 8, 48


def real_curves(count):
    """Noisy daily cycles with a random phase and a random strength."""
    hours = torch.arange(LENGTH, dtype=torch.float32)
    phase = torch.rand(count, 1) * 2.0
    strength = 0.6 + 0.4 * torch.rand(count, 1)
    curve = strength * torch.sin(2 * math.pi * hours / LENGTH + phase)
    return (curve + 0.05 * torch.randn(count, LENGTH)).unsqueeze(-1)


class CurveGenerator(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.start = nn.Linear(LATENT, hidden)
        self.recurrent = nn.GRU(LATENT, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, 1)

    def forward(self, latent):
        first = torch.tanh(self.start(latent)).unsqueeze(0)
        steps = latent.unsqueeze(1).expand(-1, LENGTH, -1)
        states, _ = self.recurrent(steps, first)
        return self.readout(states)


class CurveCritic(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, width, 5, stride=2, padding=2),
            nn.LeakyReLU(0.2),
            nn.Conv1d(width, width, 5, stride=2, padding=2),
            nn.LeakyReLU(0.2),
        )
        self.score = nn.Linear(width * LENGTH // 4, 1)

    def forward(self, curves):
        features = self.body(curves.transpose(1, 2))
        return self.score(features.flatten(1)).squeeze(-1)


def slopes(critic, real, fake):
    """Norm of the critic's slope at random points between real and generated curves."""
    share = torch.rand(real.shape[0], 1, 1)
    points = (share * real + (1 - share) * fake).requires_grad_(True)
    scores = critic(points)
    (slope,) = torch.autograd.grad(scores.sum(), points)
    return slope.flatten(1).norm(dim=1)


def critic_step(critic, generator, optimizer, weight):
    real = real_curves(BATCH)
    with torch.no_grad():
        fake = generator(torch.randn(BATCH, LATENT))
    distance = critic(real).mean() - critic(fake).mean()
    norms = slopes(critic, real, fake)
    penalty = ((norms - 1) ** 2).mean()
    loss = weight * penalty - distance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return distance.item(), norms.mean().item()


def generator_step(critic, generator, optimizer):
    critic.requires_grad_(False)
    loss = -critic(generator(torch.randn(BATCH, LATENT))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    critic.requires_grad_(True)
    return loss.item()


def train(rounds=80, critic_steps=3, weight=10.0):
    generator, critic = CurveGenerator(), CurveCritic()
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.9))
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
    for round_index in range(rounds):
        for _ in range(critic_steps):
            distance, slope = critic_step(critic, generator, critic_optimizer, weight)
        generator_step(critic, generator, generator_optimizer)
        if (round_index + 1) % 20 == 0:
            print(f"round {round_index + 1:3d}  distance {distance:8.3f}  slope {slope:7.3f}")
    return generator, critic


def compare(generator, count=400):
    with torch.no_grad():
        made, seen = generator(torch.randn(count, LATENT)), real_curves(count)
    lag = lambda c: (c[:, 1:] * c[:, :-1]).mean().item()
    print(f"spread    real {seen.std().item():.3f}  generated {made.std().item():.3f}")
    print(f"lag-one   real {lag(seen):.3f}  generated {lag(made):.3f}")


if __name__ == "__main__":
    torch.manual_seed(11)
    generator, critic = train()
    compare(generator)
