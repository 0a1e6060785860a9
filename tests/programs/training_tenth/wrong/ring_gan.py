"""GAN on a ring of Gaussians; both networks accumulate gradients over micro-batches to reach the full batch size."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
LATENT, MODES, MICRO, ACCUM = 8, 8, 128, 2


def mlp(*widths):
    layers = []
    for a, b in zip(widths[:-1], widths[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(LATENT, 64, 64, 2)

    def forward(self, count):
        return self.net(torch.randn(count, LATENT))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(2, 64, 64, 1)

    def forward(self, points):
        return self.net(points).squeeze(1)


def real_points(count):
    angle = torch.randint(0, MODES, (count,)) * (2 * math.pi / MODES)
    return 2.0 * torch.stack([angle.cos(), angle.sin()], dim=1) + 0.1 * torch.randn(count, 2)


def d_objective(disc, real, fake):
    return F.softplus(-disc(real)).mean() + F.softplus(disc(fake)).mean()


def g_objective(disc, fake):
    return F.softplus(-disc(fake)).mean()


@torch.no_grad()
def quality(gen, count=2000):
    points = gen(count)
    angle = torch.arange(MODES) * (2 * math.pi / MODES)
    centres = 2.0 * torch.stack([angle.cos(), angle.sin()], dim=1)
    distance, nearest = torch.cdist(points, centres).min(dim=1)
    good = distance < 0.4
    covered = (torch.bincount(nearest[good], minlength=MODES) > count // 100).sum().item()
    return good.float().mean().item(), covered


class Trainer:
    def __init__(self, gen, disc, lr=2e-3):
        self.gen, self.disc = gen, disc
        self.opt_g = torch.optim.Adam(gen.parameters(), lr=lr, betas=(0.5, 0.9))
        self.opt_d = torch.optim.Adam(disc.parameters(), lr=lr, betas=(0.5, 0.9))

    def micro_step(self, real):
        fake = self.gen(len(real))
        d_loss = d_objective(self.disc, real, fake.detach())
        (d_loss / ACCUM).backward()
        g_loss = g_objective(self.disc, fake)
        (g_loss / ACCUM).backward()
        return d_loss.item(), g_loss.item()

    def update(self, batch):
        self.opt_d.zero_grad(set_to_none=True)
        self.opt_g.zero_grad(set_to_none=True)
        losses = [self.micro_step(real) for real in batch.split(MICRO)]
        self.opt_d.step()
        self.opt_g.step()
        return [sum(column) / len(losses) for column in zip(*losses)]


gen, disc = Generator(), Discriminator()
trainer = Trainer(gen, disc)
for step in range(1, 1001):
    d_loss, g_loss = trainer.update(real_points(MICRO * ACCUM))
    if step % 250 == 0:
        good, covered = quality(gen)
        print(f"step {step} d {d_loss:.3f} g {g_loss:.3f} good {good:.2f} modes {covered}")
