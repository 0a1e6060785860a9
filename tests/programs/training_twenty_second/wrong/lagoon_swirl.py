"""Generative models, problem set 2: WGAN-GP on a two-armed swirl."""
import math

import torch
from torch import nn

BATCH = 128
LATENT = 4
N_CRITIC = 4
LAMBDA = 10.0
STEPS = 150


def swirl(n):
    """Points on two interleaved spiral arms, roughly in [-1.5, 1.5]^2."""
    t = torch.rand(n) * 1.5 * math.pi + 0.5
    arm = torch.randint(0, 2, (n,)) * math.pi
    xy = torch.stack([t * torch.cos(t + arm), t * torch.sin(t + arm)], dim=1) / 4.0
    return xy + 0.02 * torch.randn(n, 2)


def mlp(sizes, act):
    layers = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if i < len(sizes) - 2:
            layers.append(act())
    return nn.Sequential(*layers)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp([LATENT, 64, 64, 2], nn.ReLU)

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp([2, 64, 64, 1], lambda: nn.LeakyReLU(0.2))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mixed)
    grad, = torch.autograd.grad(outputs=score, inputs=mixed, grad_outputs=torch.ones_like(score))
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


def train_critic(critic, gen, opt):
    real = swirl(BATCH)
    with torch.no_grad():
        fake = gen(torch.randn(BATCH, LATENT))
    wasserstein = critic(real).mean() - critic(fake).mean()
    gp = gradient_penalty(critic, real, fake)
    loss = -wasserstein + LAMBDA * gp
    opt.zero_grad()
    loss.backward()
    opt.step()
    return wasserstein.item(), gp.item()


def train_generator(critic, gen, opt):
    loss = -critic(gen(torch.randn(BATCH, LATENT))).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    torch.manual_seed(11)
    gen, critic = Generator(), Critic()
    opt_g = torch.optim.Adam(gen.parameters(), lr=2e-4, betas=(0.0, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.0, 0.9))
    for step in range(STEPS):
        for _ in range(N_CRITIC):
            w, gp = train_critic(critic, gen, opt_c)
        g = train_generator(critic, gen, opt_g)
        if step % 30 == 0 or step == STEPS - 1:
            print(f"step {step:4d}  W {w:8.4f}  gp {gp:8.4f}  g_loss {g:8.4f}")
    with torch.no_grad():
        sample = gen(torch.randn(2000, LATENT))
        real = swirl(2000)
    print("real mean/std  ", real.mean(0).tolist(), real.std(0).tolist())
    print("sample mean/std", sample.mean(0).tolist(), sample.std(0).tolist())


if __name__ == "__main__":
    main()
