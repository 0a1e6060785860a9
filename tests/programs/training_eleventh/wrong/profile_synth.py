"""Synthetic daily temperature profiles for a building simulator (a small hinge GAN on 24-hour curves).

Formerly a Lightning module with two optimizers; the Trainer below replaces the dependency.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
HOURS, NOISE = 24, 8


def make_days(n):
    """Days with their own level, swing and hour of the maximum; a third of them have a cold front in the afternoon."""
    t = torch.arange(HOURS)
    level = 0.5 * torch.randn(n, 1)
    swing = 0.6 + 0.5 * torch.rand(n, 1)
    peak = 14 + 1.5 * torch.randn(n, 1)
    days = level + swing * torch.cos(2 * math.pi * (t - peak) / HOURS)
    front = (torch.rand(n, 1) < 0.33).float() * (0.6 + 0.5 * torch.rand(n, 1))
    days = days - front * torch.sigmoid((t - 15.0) / 0.7)
    return days + 0.05 * torch.randn(n, HOURS)


class ProfileGAN(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(NOISE, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                       nn.Linear(width, HOURS))
        self.critic = nn.Sequential(nn.Linear(HOURS, width), nn.LeakyReLU(0.2), nn.Linear(width, width),
                                    nn.LeakyReLU(0.2), nn.Linear(width, 1))

    def sample(self, n):
        return self.generator(torch.randn(n, NOISE))

    def configure_optimizers(self):
        return [torch.optim.Adam(self.critic.parameters(), lr=1e-3, betas=(0.5, 0.99)),
                torch.optim.Adam(self.generator.parameters(), lr=5e-4, betas=(0.5, 0.99))]

    def training_step(self, batch, optimizer_idx):
        fake = self.sample(len(batch))
        if optimizer_idx == 0:
            real_score, fake_score = self.critic(batch), self.critic(fake.detach())
            loss = F.relu(1 - real_score).mean() + F.relu(1 + fake_score).mean()
            return {"loss": loss, "log": {"critic": loss.item()}}
        loss = -self.critic(fake).mean()
        return {"loss": loss, "log": {"generator": loss.item()}}


class Trainer:
    def __init__(self, max_steps, log_every):
        self.max_steps, self.log_every = max_steps, log_every

    def fit(self, module, batches):
        self.optimizers = module.configure_optimizers()
        module.train()
        for step in range(1, self.max_steps + 1):
            batch, logs = next(batches), {}
            for idx, optimizer in enumerate(self.optimizers):
                result = module.training_step(batch, idx)
                result["loss"].backward()
                optimizer.step()
                optimizer.zero_grad()
                logs.update(result["log"])
            if step % self.log_every == 0:
                print(f"step {step:5d}  " + "  ".join(f"{k} {v:.3f}" for k, v in logs.items()))


def batch_stream(days, size):
    while True:
        yield days[torch.randint(0, len(days), (size,))]


def sliced_distance(a, b, directions=200):
    """Sliced Wasserstein distance between two sets of profiles of equal size."""
    w = F.normalize(torch.randn(HOURS, directions, generator=torch.Generator().manual_seed(1)), dim=0)
    return ((a @ w).sort(0).values - (b @ w).sort(0).values).abs().mean().item()


days = make_days(4000)
module = ProfileGAN()
Trainer(max_steps=1500, log_every=300).fit(module, batch_stream(days, 64))

module.eval()
with torch.no_grad():
    drawn = module.sample(2000)
reference = make_days(2000)
floor = sliced_distance(make_days(2000), reference)
distance = sliced_distance(drawn, reference)
print(f"mean profile off by {(drawn.mean(0) - reference.mean(0)).abs().mean().item():.3f}")
print(f"sliced distance to fresh days {distance:.4f} (between two sets of real days {floor:.4f})")
