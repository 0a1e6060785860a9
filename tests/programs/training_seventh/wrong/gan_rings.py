"""Two-dimensional ring-of-modes GAN with relativistic losses; both players are updated from the same batch."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def mlp(sizes, act):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class Generator(nn.Module):
    def __init__(self, noise_dim=6, width=64):
        super().__init__()
        self.noise_dim = noise_dim
        self.net = mlp([noise_dim, width, width, 2], nn.ReLU)

    def forward(self, n, gen):
        return 2.0 * self.net(torch.randn(n, self.noise_dim, generator=gen))


class Critic(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = mlp([2, width, width, 1], lambda: nn.LeakyReLU(0.2))

    def forward(self, x):
        return self.net(x).squeeze(1)


def ring(n, gen, modes=6, radius=2.0):
    k = torch.randint(0, modes, (n,), generator=gen)
    angle = 2 * math.pi * k / modes
    centre = radius * torch.stack([angle.cos(), angle.sin()], dim=1)
    return centre + 0.12 * torch.randn(n, 2, generator=gen)


def critic_loss(critic, real, fake):
    gap = critic(real) - critic(fake.detach())
    return F.softplus(-gap).mean()


def generator_loss(critic, real, fake):
    gap = critic(fake) - critic(real)
    return F.softplus(-gap).mean()


class Game:
    def __init__(self, seed=0, lr_g=1e-3, lr_c=2e-3):
        self.gen = torch.Generator().manual_seed(seed)
        self.generator, self.critic = Generator(), Critic()
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=lr_g, betas=(0.0, 0.99))
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=lr_c, betas=(0.0, 0.99))
        self.gap = []

    def round(self, batch=96):
        real = ring(batch, self.gen)
        fake = self.generator(batch, self.gen)
        self.opt_c.zero_grad()
        self.opt_g.zero_grad()
        loss_c = critic_loss(self.critic, real, fake)
        loss_c.backward()
        loss_g = generator_loss(self.critic, real, fake)
        loss_g.backward()
        self.opt_c.step()
        self.opt_g.step()
        self.gap.append(loss_g.item() - loss_c.item())
        return loss_c.item(), loss_g.item()

    @torch.no_grad()
    def coverage(self, n=1200, modes=6, radius=2.0):
        x = self.generator(n, self.gen)
        angle = 2 * math.pi * torch.arange(modes) / modes
        centre = radius * torch.stack([angle.cos(), angle.sin()], dim=1)
        d, k = torch.cdist(x, centre).min(dim=1)
        share = torch.bincount(k[d < 0.5], minlength=modes).float() / n
        return (share > 0.02).sum().item(), share.sum().item()


def main(rounds=700):
    torch.manual_seed(13)
    game = Game(seed=31)
    for i in range(rounds):
        loss_c, loss_g = game.round()
        if i % 140 == 0:
            print(f"round {i:4d}  critic {loss_c:.3f}  generator {loss_g:.3f}")
    modes, share = game.coverage()
    print(f"modes {modes} of 6, samples near a mode {share:.2f}")
    return game


if __name__ == "__main__":
    game = main()
