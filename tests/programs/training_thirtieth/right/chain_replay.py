"""Energy-based model trained by persistent contrastive divergence with a replay buffer of Langevin chains."""
import math

import torch
from torch import nn

BATCH = 96
STEPS = 110
CHAIN_STEPS = 8
STEP_SIZE = 0.02
RESTART = 0.05
BUFFER = 1024
BOX = 3.0


def crosses(n):
    """Points along two crossing bars."""
    along = 2.0 * (2 * torch.rand(n) - 1)
    across = 0.15 * torch.randn(n)
    pick = torch.rand(n) < 0.5
    x = torch.where(pick, along, across)
    y = torch.where(pick, across, along)
    return torch.stack([x, y], dim=1)


class Energy(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1, bias=False)
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


class ChainBuffer:
    """Keeps the ends of earlier chains; every new chain starts from one of them or, now and then, from noise."""

    def __init__(self, size):
        self.points = self.noise(size)

    @staticmethod
    def noise(n):
        return BOX * (2 * torch.rand(n, 2) - 1)

    def begin(self, n):
        index = torch.randperm(len(self.points))[:n]
        start = self.points[index]
        fresh = torch.rand(n) < RESTART
        start[fresh] = self.noise(int(fresh.sum()))
        return index, start

    def keep(self, index, points):
        self.points[index] = points


def run_chain(energy, start, steps=CHAIN_STEPS):
    x = start.requires_grad_(True)
    for _ in range(steps):
        energy(x).sum().backward()
        x.data.add_(x.grad, alpha=-STEP_SIZE)
        x.data.add_(torch.randn_like(x), alpha=math.sqrt(2 * STEP_SIZE))
        x.data.clamp_(-BOX, BOX)
        x.grad.zero_()
    return x.detach()


def on_bars(points):
    near = points.abs().min(dim=1).values < 0.45
    inside = points.abs().max(dim=1).values < 2.3
    return (near & inside).float().mean().item()


def main():
    torch.manual_seed(13)
    data = crosses(4096)
    energy = Energy()
    optimizer = torch.optim.Adam(energy.parameters(), lr=1.5e-2, betas=(0.5, 0.99))
    decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
    buffer = ChainBuffer(BUFFER)

    for step in range(STEPS):
        real = data[torch.randint(len(data), (BATCH,))]
        real = real + 0.02 * torch.randn_like(real)
        index, start = buffer.begin(BATCH)
        fake = run_chain(energy, start)
        buffer.keep(index, fake)

        e_real, e_fake = energy(real), energy(fake)
        contrast = e_real.mean() - e_fake.mean()
        size = (e_real.pow(2) + e_fake.pow(2)).mean()
        loss = contrast + 0.002 * size
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(energy.parameters(), 2.0)
        optimizer.step()
        decay.step()
        if step % 40 == 0 or step == STEPS - 1:
            print(f"step {step:4d}  contrast {contrast.item():7.3f}  real {e_real.mean():7.3f}  fake {e_fake.mean():7.3f}")

    held_out = crosses(1000)
    with torch.no_grad():
        gap = (energy(ChainBuffer.noise(1000)).mean() - energy(held_out).mean()).item()
    samples = run_chain(energy, ChainBuffer.noise(500), steps=100)
    print(f"energy of noise above that of held-out data {gap:.3f}")
    print(f"on the bars: noise {on_bars(ChainBuffer.noise(2000)):.3f}  samples {on_bars(samples):.3f}")
    return energy, buffer, samples


if __name__ == "__main__":
    energy, buffer, samples = main()
