import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from train_helpers import ImagePool, frozen


def translator():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))


def discriminator():
    return nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))


class CycleGAN:
    def __init__(self, lam_cycle=5.0, lam_id=1.0):
        self.g_ab, self.g_ba = translator(), translator()
        self.d_a, self.d_b = discriminator(), discriminator()
        self.pool_a, self.pool_b = ImagePool(64), ImagePool(64)
        self.lam_cycle, self.lam_id = lam_cycle, lam_id
        gens = list(self.g_ab.parameters()) + list(self.g_ba.parameters())
        discs = list(self.d_a.parameters()) + list(self.d_b.parameters())
        self.opt_g = torch.optim.Adam(gens, lr=1e-3, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(discs, lr=1e-3, betas=(0.5, 0.999))

    def adv(self, disc, x, target):
        score = disc(x)
        return F.mse_loss(score, torch.full_like(score, target))

    def generator_step(self, a, b):
        with frozen(self.d_a, self.d_b):
            fake_b, fake_a = self.g_ab(a), self.g_ba(b)
            cycle = F.l1_loss(self.g_ba(fake_b), a) + F.l1_loss(self.g_ab(fake_a), b)
            ident = F.l1_loss(self.g_ab(b), b) + F.l1_loss(self.g_ba(a), a)
            adv = self.adv(self.d_b, fake_b, 1.0) + self.adv(self.d_a, fake_a, 1.0)
            loss = adv + self.lam_cycle * cycle + self.lam_id * ident
            self.opt_g.zero_grad()
            loss.backward()
            self.opt_g.step()
        return fake_a, fake_b, loss.item()

    def discriminator_step(self, a, b, fake_a, fake_b):
        fake_a = self.pool_a.query(fake_a.detach())
        fake_b = self.pool_b.query(fake_b.detach())
        loss = 0.5 * (self.adv(self.d_a, a, 1.0) + self.adv(self.d_a, fake_a, 0.0))
        loss = loss + 0.5 * (self.adv(self.d_b, b, 1.0) + self.adv(self.d_b, fake_b, 0.0))
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def step(self, a, b):
        fake_a, fake_b, g_loss = self.generator_step(a, b)
        return g_loss, self.discriminator_step(a, b, fake_a, fake_b)


if __name__ == "__main__":
    torch.manual_seed(4)
    model = CycleGAN()
    base = torch.linspace(0, 3, 8)
    for it in range(20):
        phase = torch.rand(32, 1) * 3
        real_a = torch.sin(base + phase)
        real_b = torch.sign(torch.sin(base + torch.rand(32, 1) * 3))
        g, d = model.step(real_a, real_b)
        if it % 4 == 0:
            print(f"it {it:2d} g {g:.4f} d {d:.4f}")
