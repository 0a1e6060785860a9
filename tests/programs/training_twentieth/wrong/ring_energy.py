"""Energy-based model of a noisy ring of particles, trained by persistent contrastive divergence.

Samples come from short Langevin chains that are restarted from a buffer of earlier samples, 5 % of them from noise
(Du & Mordatch, 2019).  Energies are bounded by a tanh and kept small with an L2 term.
"""
import math

import torch
from torch import nn

torch.manual_seed(11)
torch.set_num_threads(1)

BATCH = 128
CHAIN = 20
STEP = 0.05
NOISE = 0.05


def ring(n):
    angle = torch.rand(n) * 2 * math.pi
    radius = 1.5 + 0.1 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)


class Energy(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return 3 * torch.tanh(self.net(x).squeeze(-1) / 3)


class SampleBuffer:
    def __init__(self, size=2000):
        self.points = torch.rand(size, 2) * 5 - 2.5

    def draw(self, n):
        index = torch.randint(0, len(self.points), (n,))
        points = self.points[index].clone()
        fresh = torch.rand(n) < 0.05
        points[fresh] = torch.rand(int(fresh.sum()), 2) * 5 - 2.5
        return index, points

    def put(self, index, points):
        self.points[index] = points


def langevin(energy, start, steps=CHAIN):
    x = start.clone().requires_grad_(True)
    for _ in range(steps):
        energy(x).sum().backward()
        with torch.no_grad():
            x -= STEP * x.grad.clamp(-5, 5)
            x += NOISE * torch.randn_like(x)
            x.clamp_(-3, 3)
            x.grad.zero_()
    return x.detach()


def main():
    energy = Energy()
    optimizer = torch.optim.Adam(energy.parameters(), lr=2e-3, betas=(0.0, 0.999))
    buffer = SampleBuffer()

    for step in range(1, 201):
        optimizer.zero_grad()
        real = ring(BATCH)
        real = real + 0.02 * torch.randn_like(real)
        index, start = buffer.draw(BATCH)
        fake = langevin(energy, start)
        buffer.put(index, fake)

        e_real, e_fake = energy(real), energy(fake)
        contrast = e_real.mean() - e_fake.mean()
        penalty = 0.1 * (e_real.pow(2) + e_fake.pow(2)).mean()
        (contrast + penalty).backward()
        nn.utils.clip_grad_norm_(energy.parameters(), 1.0)
        optimizer.step()

        if step % 50 == 0:
            print(f"step {step:4d}  contrast {contrast.item():+.3f}  penalty {penalty.item():.3f}")

    samples = langevin(energy, torch.rand(1000, 2) * 5 - 2.5, steps=100)
    off_ring = (samples.norm(dim=1) - 1.5).abs().mean().item()
    with torch.no_grad():
        on, off = energy(ring(1000)).mean().item(), energy(torch.rand(1000, 2) * 5 - 2.5).mean().item()
    print(f"mean distance of samples from the ring {off_ring:.3f}")
    print(f"energy on the ring {on:+.3f}, on uniform points {off:+.3f}")
    return off_ring, on, off


if __name__ == "__main__":
    off_ring, on_ring, uniform = main()
