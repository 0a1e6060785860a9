import contextlib
import math

import torch
import torch.nn as nn


def mlp(n_in, n_out, width=32):
    return nn.Sequential(nn.Linear(n_in, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, n_out))


@contextlib.contextmanager
def frozen(module):
    flags = [p.requires_grad for p in module.parameters()]
    module.requires_grad_(False)
    try:
        yield module
    finally:
        for p, flag in zip(module.parameters(), flags):
            p.requires_grad_(flag)


def slope_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    point = (mix * real + (1 - mix) * fake).detach().requires_grad_()
    score = critic(point)
    (slope,) = torch.autograd.grad(score.sum(), point, create_graph=True)
    return (slope.norm(dim=1) - 1).pow(2).mean()


class Game:
    def __init__(self, noise=4, critic_steps=3, penalty=10.0):
        self.generator = mlp(noise, 2)
        self.critic = mlp(2, 1)
        self.g_opt = torch.optim.Adam(self.generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
        self.c_opt = torch.optim.Adam(self.critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
        self.noise, self.critic_steps, self.penalty = noise, critic_steps, penalty

    def fake(self, size):
        return self.generator(torch.randn(size, self.noise))

    def critic_round(self, real):
        with torch.no_grad():
            fake = self.fake(len(real))
        gap = self.critic(fake).mean() - self.critic(real).mean()
        loss = gap + self.penalty * slope_penalty(self.critic, real, fake)
        self.c_opt.zero_grad(set_to_none=True)
        loss.backward()
        self.c_opt.step()
        return -gap.item()

    def generator_round(self, size):
        with frozen(self.critic):
            loss = -self.critic(self.fake(size)).mean()
            self.g_opt.zero_grad(set_to_none=True)
            loss.backward()
            self.g_opt.step()
        return loss.item()

    def play(self, sampler, size=64):
        for _ in range(self.critic_steps):
            distance = self.critic_round(sampler(size))
        return distance, self.generator_round(size)


def rings(size):
    angle = 2 * math.pi * torch.rand(size)
    radius = torch.randint(1, 3, (size,)) + 0.05 * torch.randn(size)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)


def main(rounds=40):
    torch.manual_seed(0)
    game = Game()
    for i in range(rounds):
        distance, loss = game.play(rings)
        if i % 10 == 0:
            print(f"round {i} distance {distance:.4f} generator {loss:.4f}")
    return game


if __name__ == "__main__":
    game = main()
