from contextlib import contextmanager

import torch
from torch import nn


class QuadraticEnergy(nn.Module):
    def __init__(self, dim=3, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, width), nn.Softplus(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1) + 0.1 * x.pow(2).sum(-1)


@contextmanager
def inert(module):
    flags = [p.requires_grad for p in module.parameters()]
    module.requires_grad_(False)
    try:
        yield module
    finally:
        for p, flag in zip(module.parameters(), flags):
            p.requires_grad_(flag)


class Walker:
    def __init__(self, size, dim, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.chains = torch.randn(size, dim, generator=self.g)

    def advance(self, energy, n, steps=10, eta=0.1):
        pick = torch.randperm(len(self.chains), generator=self.g)[:n]
        x = self.chains[pick].requires_grad_(True)
        with inert(energy):
            for _ in range(steps):
                energy(x).sum().backward()
                with torch.no_grad():
                    x -= eta * x.grad - 0.05 * torch.randn(x.shape, generator=self.g)
                x.grad = None
        self.chains[pick] = x.detach()
        return x.detach()


def train(energy, walker, data, steps=40):
    opt = torch.optim.Adam(energy.parameters(), lr=2e-3)
    g = torch.Generator().manual_seed(7)
    for k in range(steps):
        opt.zero_grad()
        low = data[torch.randint(0, len(data), (64,), generator=g)]
        high = walker.advance(energy, 64)
        e_low, e_high = energy(low), energy(high)
        loss = e_low.mean() - e_high.mean() + 0.05 * (e_low.pow(2) + e_high.pow(2)).mean()
        loss.backward()
        opt.step()
        if k % 10 == 9:
            print(f"{k + 1} loss {loss.item():.4f} low {e_low.mean():.3f} high {e_high.mean():.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    data = torch.randn(600, 3) * torch.tensor([0.3, 1.0, 0.3]) + torch.tensor([1.0, 0.0, -1.0])
    energy = QuadraticEnergy()
    train(energy, Walker(256, 3, seed=2), data)
