"""Energy-based model of a two-spiral density, trained by maximum likelihood with a Langevin sampler and a replay buffer."""
import math

import torch
from torch import nn


def spirals(n, generator):
    radius = torch.rand(n, generator=generator).sqrt() * 2.0 + 0.3
    angle = radius * 2.2 + math.pi * torch.randint(0, 2, (n,), generator=generator)
    points = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)
    return points + 0.06 * torch.randn(n, 2, generator=generator)


class EnergyNet(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.body(x).squeeze(-1)


class LangevinSampler:
    def __init__(self, net, size=2000, steps=12, step_size=0.05, noise=0.05, fresh=0.05):
        self.net = net
        self.steps = steps
        self.step_size = step_size
        self.noise = noise
        self.fresh = fresh
        self.buffer = torch.rand(size, 2) * 6 - 3

    def draw(self, n):
        index = torch.randint(len(self.buffer), (n,))
        x = self.buffer[index]
        restart = torch.rand(n) < self.fresh
        x[restart] = torch.rand(int(restart.sum()), 2) * 6 - 3
        for _ in range(self.steps):
            x = x.detach().requires_grad_(True)
            self.net(x).sum().backward()
            x = x - self.step_size * x.grad.clamp(-2, 2) + self.noise * torch.randn_like(x)
            x = x.clamp(-3.5, 3.5)
        x = x.detach()
        self.buffer[index] = x
        return x


class Trainer:
    def __init__(self, lr=1e-3, reg=0.05):
        self.net = EnergyNet()
        self.sampler = LangevinSampler(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=lr, betas=(0.5, 0.999))
        self.reg = reg

    def step(self, real):
        self.optimizer.zero_grad()
        real = real + 0.02 * torch.randn_like(real)
        fake = self.sampler.draw(len(real))
        e_real = self.net(real)
        e_fake = self.net(fake)
        contrast = e_real.mean() - e_fake.mean()
        penalty = self.reg * (e_real.pow(2).mean() + e_fake.pow(2).mean())
        loss = contrast + penalty
        loss.backward()
        self.optimizer.step()
        return contrast.item(), penalty.item()


@torch.no_grad()
def log_likelihood(net, x, grid=81):
    axis = torch.linspace(-3.5, 3.5, grid)
    cell = (axis[1] - axis[0]).item() ** 2
    mesh = torch.cartesian_prod(axis, axis)
    log_z = torch.logsumexp(-net(mesh), dim=0) + math.log(cell)
    return (-net(x) - log_z).mean().item()


def main():
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(5)
    train = spirals(4000, generator)
    test = spirals(1000, generator)
    trainer = Trainer()
    print(f"start: test log-likelihood {log_likelihood(trainer.net, test):.3f}")
    for iteration in range(1, 121):
        batch = train[torch.randint(len(train), (128,))]
        contrast, penalty = trainer.step(batch)
        if iteration % 30 == 0:
            score = log_likelihood(trainer.net, test)
            print(f"{iteration:4d}  contrast {contrast:+.3f}  penalty {penalty:.3f}  test log-likelihood {score:.3f}")
    return trainer, log_likelihood(trainer.net, test)


if __name__ == "__main__":
    trainer, final = main()
    print(f"final test log-likelihood: {final:.3f}")
