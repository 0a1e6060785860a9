from dataclasses import dataclass
from itertools import count

import torch
from torch import nn


@dataclass
class Options:
    noise: int = 4
    hidden: int = 32
    batch: int = 48
    critic_steps: int = 3
    penalty: float = 10.0
    lr: float = 2e-3
    rounds: int = 25


def mlp(inputs, hidden, outputs, last_bias=True):
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.SiLU(),
        nn.Linear(hidden, hidden),
        nn.SiLU(),
        nn.Linear(hidden, outputs, bias=last_bias),
    )


def ring(n):
    angle = torch.randint(0, 8, (n,)) * 0.7854
    return torch.stack([angle.cos(), angle.sin()], dim=1) * 2 + 0.05 * torch.randn(n, 2)


def smoothness(critic, real, fake):
    mix = torch.rand(len(real), 1)
    points = (mix * real + (1 - mix) * fake).requires_grad_()
    (slopes,) = torch.autograd.grad(critic(points).sum(), points)
    return (slopes.norm(2, dim=1) - 1).square().mean()


class Game:
    def __init__(self, opt):
        self.opt = opt
        self.generator = mlp(opt.noise, opt.hidden, 2)
        self.critic = mlp(2, opt.hidden, 1, last_bias=False)
        self.g_optim = torch.optim.Adam(self.generator.parameters(), lr=opt.lr, betas=(0.5, 0.9))
        self.c_optim = torch.optim.Adam(self.critic.parameters(), lr=opt.lr, betas=(0.5, 0.9))

    def sample(self):
        return self.generator(torch.randn(self.opt.batch, self.opt.noise))

    def critic_step(self):
        real = ring(self.opt.batch)
        with torch.no_grad():
            fake = self.sample()
        gap = self.critic(fake).mean() - self.critic(real).mean()
        loss = gap + self.opt.penalty * smoothness(self.critic, real, fake)
        self.c_optim.zero_grad()
        loss.backward()
        self.c_optim.step()
        return -gap.item()

    def generator_step(self):
        self.critic.requires_grad_(False)
        loss = -self.critic(self.sample()).mean()
        self.g_optim.zero_grad()
        loss.backward()
        self.g_optim.step()
        self.critic.requires_grad_(True)
        return loss.item()


def main(opt):
    torch.manual_seed(12)
    game = Game(opt)
    for round_ in count(1):
        for _ in range(opt.critic_steps):
            distance = game.critic_step()
        loss = game.generator_step()
        if round_ % 5 == 0:
            print(f"round {round_:2d} distance {distance:.4f} generator {loss:.4f}")
        if round_ == opt.rounds:
            return game


if __name__ == "__main__":
    main(Options())
