"""A generator of points on a ring of eight clusters, trained against a critic with a lazy gradient penalty."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

NOISE = 8
PENALTY = 0.2
PENALTY_EVERY = 4


def ring(count):
    angle = torch.randint(8, (count,)) * (math.pi / 4)
    centre = torch.stack([angle.cos(), angle.sin()], dim=1)
    return centre + 0.05 * torch.randn(count, 2)


def mlp(inputs, outputs, width=64):
    return nn.Sequential(
        nn.Linear(inputs, width), nn.LeakyReLU(0.2),
        nn.Linear(width, width), nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


class RingTrainer:
    def __init__(self):
        self.generator = mlp(NOISE, 2)
        self.critic = mlp(2, 1)
        self.average = copy.deepcopy(self.generator).requires_grad_(False).eval()
        self.g_opt = torch.optim.Adam(self.generator.parameters(), lr=1e-3, betas=(0.0, 0.99))
        self.c_opt = torch.optim.Adam(self.critic.parameters(), lr=2e-3, betas=(0.0, 0.99))
        self.steps = 0

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.generator(torch.randn(len(real), NOISE))
        loss = F.softplus(self.critic(fake)).mean() + F.softplus(-self.critic(real)).mean()
        if self.steps % PENALTY_EVERY == 0:
            loss = loss + PENALTY_EVERY * self.penalty(real)
        self.c_opt.zero_grad(set_to_none=True)
        loss.backward()
        self.c_opt.step()
        return loss.item()

    def penalty(self, real):
        points = real.detach().requires_grad_(True)
        slope, = torch.autograd.grad(self.critic(points).sum(), points, create_graph=True)
        return 0.5 * PENALTY * slope.pow(2).sum(1).mean()

    def generator_step(self, count):
        self.critic.requires_grad_(False)
        loss = F.softplus(-self.critic(self.generator(torch.randn(count, NOISE)))).mean()
        loss.backward()
        self.g_opt.step()
        self.g_opt.zero_grad(set_to_none=True)
        self.critic.requires_grad_(True)
        return loss.item()

    @torch.no_grad()
    def update_average(self):
        keep = min(0.98, (self.steps + 1) / (self.steps + 10))
        for a, p in zip(self.average.parameters(), self.generator.parameters()):
            a.lerp_(p, 1 - keep)

    def step(self, count=128):
        c_loss = self.critic_step(ring(count))
        g_loss = self.generator_step(count)
        self.update_average()
        self.steps += 1
        return c_loss, g_loss


@torch.no_grad()
def quality(generator, count=1000):
    """Mean distance from the ring and the number of clusters that get at least two percent of the points."""
    points = generator(torch.randn(count, NOISE))
    radius = (points.norm(dim=1) - 1).abs().mean().item()
    sector = (torch.atan2(points[:, 1], points[:, 0]) / (math.pi / 4)).round().long() % 8
    filled = (torch.bincount(sector, minlength=8) >= 0.02 * count).sum().item()
    return radius, filled


def main():
    torch.manual_seed(8)
    trainer = RingTrainer()
    for i in range(1, 241):
        c_loss, g_loss = trainer.step()
        if i % 80 == 0:
            radius, filled = quality(trainer.average)
            print(f"step {i:4d}  critic {c_loss:.3f}  generator {g_loss:.3f}  "
                  f"distance {radius:.3f}  clusters {filled}")


if __name__ == "__main__":
    main()
