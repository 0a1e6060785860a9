"""Adversarial autoencoder over synthetic molecular fingerprints: codes are pushed towards a ring-shaped prior."""
import math

import torch
import torch.nn.functional as F
from torch import nn

BITS, CODE = 96, 2


def dense(*sizes, last=None):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.SiLU()]
    layers.pop()
    return nn.Sequential(*layers, *([last] if last else []))


def fingerprints(n, gen, scaffolds=6):
    kind = torch.randint(0, scaffolds, (n,), generator=gen)
    base = (torch.arange(BITS)[None] // (BITS // scaffolds) == kind[:, None]).float()
    substituent = torch.rand(n, 1, generator=gen)
    tail = (torch.arange(BITS)[None] % 16 < 16 * substituent).float()
    p = 0.04 + 0.8 * base * tail + 0.1 * base
    return (torch.rand(n, BITS, generator=gen) < p.clamp(max=0.95)).float()


def ring_prior(n, gen):
    angle = 2 * math.pi * torch.rand(n, generator=gen)
    radius = 2.0 + 0.15 * torch.randn(n, generator=gen)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)


class AdversarialAutoencoder:
    def __init__(self):
        self.encoder = dense(BITS, 64, 64, CODE)
        self.decoder = dense(CODE, 64, 64, BITS)
        self.judge = dense(CODE, 48, 48, 1)
        enc = list(self.encoder.parameters())
        self.opt_rebuild = torch.optim.Adam(enc + list(self.decoder.parameters()), lr=3e-3)
        self.opt_judge = torch.optim.Adam(self.judge.parameters(), lr=2e-3, betas=(0.5, 0.99))
        self.opt_fool = torch.optim.Adam(enc, lr=1e-3, betas=(0.5, 0.99))

    def rebuild(self, x):
        loss = F.binary_cross_entropy_with_logits(self.decoder(self.encoder(x)), x)
        self.opt_rebuild.zero_grad()
        loss.backward()
        self.opt_rebuild.step()
        return loss.item()

    def judge_codes(self, x, gen):
        with torch.no_grad():
            fake = self.encoder(x)
        real = ring_prior(len(x), gen)
        loss = F.softplus(-self.judge(real)).mean() + F.softplus(self.judge(fake)).mean()
        self.opt_judge.zero_grad()
        loss.backward()
        self.opt_judge.step()
        return loss.item()

    def fool(self, x):
        loss = F.softplus(-self.judge(self.encoder(x))).mean()
        self.opt_fool.zero_grad()
        loss.backward()
        self.opt_fool.step()
        return loss.item()


def radius_of_codes(model, x):
    with torch.no_grad():
        r = model.encoder(x).norm(dim=1)
    return r.mean().item(), r.std().item()


def main(iterations=450, batch=64):
    torch.manual_seed(7)
    gen = torch.Generator().manual_seed(28)
    data, held = fingerprints(1500, gen), fingerprints(400, gen)
    model = AdversarialAutoencoder()
    for i in range(iterations):
        x = data[torch.randint(0, len(data), (batch,), generator=gen)]
        a = model.rebuild(x)
        b = model.judge_codes(x, gen)
        c = model.fool(x)
        if i % 90 == 0:
            print(f"{i:4d}  rebuild {a:.3f}  judge {b:.3f}  fool {c:.3f}")
    with torch.no_grad():
        err = F.binary_cross_entropy_with_logits(model.decoder(model.encoder(held)), held).item()
    mean, std = radius_of_codes(model, held)
    print(f"held-out rebuild {err:.3f}  code radius {mean:.2f} +- {std:.2f}")


if __name__ == "__main__":
    main()
