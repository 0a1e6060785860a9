"""GAN on a ring of Gaussians: lazy R1 regularisation, a generator average for the samples, a critic held fixed in generator steps."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

LATENT = 8


def ring(n, modes=8, radius=1.5):
    angle = 2 * math.pi * torch.randint(modes, (n,)) / modes
    return radius * torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


def make_generator(hidden=64):
    return nn.Sequential(
        nn.Linear(LATENT, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(),
        nn.Linear(hidden, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(),
        nn.Linear(hidden, 2),
    )


def make_critic(hidden=64):
    return nn.Sequential(
        nn.Linear(2, hidden), nn.LeakyReLU(0.2),
        nn.Linear(hidden, hidden), nn.LeakyReLU(0.2),
        nn.Linear(hidden, 1),
    )


def r1_penalty(critic, real):
    real = real.detach().clone().requires_grad_(True)
    score = critic(real).sum()
    (slope,) = torch.autograd.grad(score, real, create_graph=True)
    return slope.pow(2).sum(dim=1).mean()


class Averaged:
    def __init__(self, model, decay=0.95):
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False).eval()

    @torch.no_grad()
    def update(self, model):
        for average, current in zip(self.model.parameters(), model.parameters()):
            average.lerp_(current, 1 - self.decay)
        for average, current in zip(self.model.buffers(), model.buffers()):
            average.copy_(current)


class Trainer:
    def __init__(self, gamma=0.05, every=4):
        self.generator, self.critic = make_generator(), make_critic()
        self.average = Averaged(self.generator)
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=3e-3, betas=(0.0, 0.99))
        self.opt_d = torch.optim.Adam(self.critic.parameters(), lr=3e-3, betas=(0.0, 0.99))
        self.gamma, self.every = gamma, every

    def critic_step(self, real, step):
        with torch.no_grad():
            fake = self.generator(torch.randn(len(real), LATENT))
        loss = F.softplus(-self.critic(real)).mean() + F.softplus(self.critic(fake)).mean()
        total = loss
        if step % self.every == 0:
            total = total + 0.5 * self.gamma * self.every * r1_penalty(self.critic, real)
        self.opt_d.zero_grad()
        total.backward()
        self.opt_d.step()
        return loss.item()

    def generator_step(self, n):
        self.critic.requires_grad_(False)
        loss = F.softplus(-self.critic(self.generator(torch.randn(n, LATENT)))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        self.critic.requires_grad_(True)
        self.average.update(self.generator)
        return loss.item()


@torch.no_grad()
def coverage(model, n=1000, modes=8, radius=1.5):
    points = model(torch.randn(n, LATENT))
    angle = 2 * math.pi * torch.arange(modes) / modes
    centres = radius * torch.stack([angle.cos(), angle.sin()], dim=1)
    distance, nearest = torch.cdist(points, centres).min(dim=1)
    return nearest[distance < 0.3].unique().numel(), distance.mean().item()


if __name__ == "__main__":
    torch.manual_seed(6)
    trainer = Trainer()
    for step in range(400):
        loss_d = trainer.critic_step(ring(128), step)
        loss_g = trainer.generator_step(128)
        if (step + 1) % 100 == 0:
            covered, mean_distance = coverage(trainer.average.model)
            print(f"{step + 1:4d}  critic {loss_d:.3f}  generator {loss_g:.3f}  modes {covered}  distance {mean_distance:.3f}")
