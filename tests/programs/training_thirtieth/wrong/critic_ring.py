"""Wasserstein critic and generator on a ring of Gaussians, with a lean activation that keeps what backward needs."""
import math

import torch
import torch.nn as nn


class LeanSwishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        ctx.save_for_backward(x, gate)
        return x * gate

    @staticmethod
    def backward(ctx, grad_output):
        x, gate = ctx.saved_tensors
        return grad_output * (gate + x * gate * (1 - gate))


class LeanSwish(nn.Module):
    def forward(self, x):
        return LeanSwishFunction.apply(x)


def mlp(n_in, width, n_out, depth=2):
    layers, size = [], n_in
    for _ in range(depth):
        layers += [nn.Linear(size, width), LeanSwish()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, n_out))


def ring(n, modes=8, radius=2.0, std=0.08):
    angle = 2 * math.pi * torch.randint(0, modes, (n,)) / modes
    centers = radius * torch.stack([angle.cos(), angle.sin()], dim=1)
    return centers + std * torch.randn(n, 2)


def slope_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    points = (mix * real + (1 - mix) * fake).requires_grad_(True)
    scores = critic(points)
    (slope,) = torch.autograd.grad(scores.sum(), points, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


class Game:
    def __init__(self, latent=4, width=40, weight=10.0):
        self.latent, self.weight = latent, weight
        self.generator = mlp(latent, width, 2)
        self.critic = mlp(2, width, 1)
        self.g_opt = torch.optim.Adam(self.generator.parameters(), lr=4e-3, betas=(0.5, 0.9))
        self.c_opt = torch.optim.Adam(self.critic.parameters(), lr=6e-3, betas=(0.5, 0.9))

    def sample(self, n):
        return self.generator(torch.randn(n, self.latent))

    def critic_step(self, n=96):
        real = ring(n)
        with torch.no_grad():
            fake = self.sample(n)
        gap = self.critic(real).mean() - self.critic(fake).mean()
        penalty = slope_penalty(self.critic, real, fake)
        self.c_opt.zero_grad()
        (self.weight * penalty - gap).backward()
        self.c_opt.step()
        return gap.item(), penalty.item()

    def generator_step(self, n=96):
        for p in self.critic.parameters():
            p.requires_grad_(False)
        loss = -self.critic(self.sample(n)).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        for p in self.critic.parameters():
            p.requires_grad_(True)
        return loss.item()


@torch.no_grad()
def coverage(game, n=500, modes=8):
    points = game.sample(n)
    angle = torch.atan2(points[:, 1], points[:, 0]) % (2 * math.pi)
    mode = (angle / (2 * math.pi) * modes).round().long() % modes
    near = (points.norm(dim=1) - 2.0).abs() < 0.5
    return len(mode[near].unique()), near.float().mean().item()


def main():
    torch.manual_seed(21)
    game = Game()
    for step in range(1, 101):
        for _ in range(2):
            gap, penalty = game.critic_step()
        game.generator_step()
        if step % 25 == 0:
            modes, near = coverage(game)
            print(f"step {step:4d}  gap {gap:.3f}  penalty {penalty:.4f}  modes {modes}  near ring {near:.2f}")
    return game


if __name__ == "__main__":
    main()
