"""A GAN for points on a ring of eight clusters."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
torch.set_num_threads(1)


@dataclass
class Config:
    latent: int = 8
    hidden: int = 64
    batch: int = 128
    steps: int = 450
    lr_g: float = 5e-4
    lr_d: float = 4e-3
    betas: tuple = (0.5, 0.9)


def ring(n):
    k = torch.randint(0, 8, (n,))
    angle = k * math.pi / 4
    centre = torch.stack([torch.cos(angle), torch.sin(angle)], 1)
    return 2.0 * centre + 0.08 * torch.randn(n, 2)


def mlp(inp, hidden, out):
    return nn.Sequential(nn.Linear(inp, hidden), nn.LeakyReLU(0.2),
                         nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, out))


class GANTrainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.gen = mlp(cfg.latent, cfg.hidden, 2)
        self.disc = mlp(2, cfg.hidden, 1)
        self.opt_g = torch.optim.Adam(self.gen.parameters(), lr=cfg.lr_g, betas=cfg.betas)
        self.opt_d = torch.optim.Adam(self.disc.parameters(), lr=cfg.lr_d, betas=cfg.betas)
        self.history = []

    def sample(self, n):
        return self.gen(torch.randn(n, self.cfg.latent))

    def disc_step(self, real):
        fake = self.sample(len(real)).detach()
        score_real, score_fake = self.disc(real), self.disc(fake)
        d_loss = (F.binary_cross_entropy_with_logits(score_real, torch.ones_like(score_real))
                  + F.binary_cross_entropy_with_logits(score_fake, torch.zeros_like(score_fake)))
        d_loss.backward()
        self.opt_d.step()
        self.opt_d.zero_grad()
        return d_loss.item()

    def gen_step(self):
        score = self.disc(self.sample(self.cfg.batch))
        g_loss = F.binary_cross_entropy_with_logits(score, torch.ones_like(score))
        g_loss.backward()
        self.opt_g.step()
        self.opt_g.zero_grad()
        return g_loss.item()

    def fit(self):
        for step in range(self.cfg.steps):
            d_loss = self.disc_step(ring(self.cfg.batch))
            g_loss = self.gen_step()
            self.history.append((d_loss, g_loss))
            if step % 100 == 0:
                print(f"step {step:4d}  D {d_loss:.3f}  G {g_loss:.3f}")

    @torch.no_grad()
    def report(self):
        points = self.sample(1000)
        centres = ring(4000).reshape(-1, 2)
        radius_error = (points.norm(dim=1) - 2.0).abs().mean().item()
        nearest = torch.cdist(points, centres).min(1).values.mean().item()
        angle = torch.atan2(points[:, 1], points[:, 0])
        modes = len(torch.unique(torch.round(angle / (math.pi / 4)) % 8))
        print(f"radius error {radius_error:.3f}, distance to data {nearest:.3f}, modes {modes}")
        return radius_error, nearest


if __name__ == "__main__":
    trainer = GANTrainer(Config())
    trainer.fit()
    result = trainer.report()
