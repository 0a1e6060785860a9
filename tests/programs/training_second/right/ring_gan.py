import math

import torch
import torch.nn.functional as F
from torch import nn


def ring(count, generator):
    angle = 2 * math.pi * torch.rand(count, generator=generator)
    points = torch.stack([angle.cos(), angle.sin()], 1)
    return points + 0.05 * torch.randn(count, 2, generator=generator)


def network(inputs, outputs, width=32):
    return nn.Sequential(
        nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, outputs)
    )


class GAN:
    def __init__(self, latent=4, lr=2e-3):
        self.latent = latent
        self.generator = network(latent, 2)
        self.critic = network(2, 1)
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.5, 0.99))
        self.opt_d = torch.optim.Adam(self.critic.parameters(), lr=lr, betas=(0.5, 0.99))

    def sample(self, count):
        return self.generator(torch.randn(count, self.latent))

    def critic_step(self, real):
        fake = self.sample(len(real)).detach()
        loss = F.softplus(-self.critic(real)).mean() + F.softplus(self.critic(fake)).mean()
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def generator_step(self, count):
        self.critic.requires_grad_(False)
        loss = F.softplus(-self.critic(self.sample(count))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        self.critic.requires_grad_(True)
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    source = torch.Generator().manual_seed(1)
    gan = GAN()
    for step in range(120):
        d_loss = gan.critic_step(ring(64, source))
        g_loss = gan.generator_step(64)
        if step % 30 == 29:
            with torch.no_grad():
                radius = gan.sample(256).norm(dim=1).mean().item()
            print(f"step {step + 1} critic {d_loss:.4f} generator {g_loss:.4f} radius {radius:.3f}")
