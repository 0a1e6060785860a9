"""NICE-style normalizing flow for tabular densities: actnorm, random rotation, additive coupling, repeated.

The couplings preserve volume; the scales of the actnorm layers carry the change of volume.
"""
import math

import torch
from torch import nn

DIM = 6
BLOCKS = 4
BATCH = 128
STEPS = 150


def make_table(n):
    """Correlated, skewed columns, as found in log-transformed measurements."""
    base = torch.randn(n, DIM)
    a = base[:, 0]
    cols = [
        a,
        a.pow(2) * 0.6 + 0.3 * base[:, 1],
        torch.sin(2 * a) + 0.3 * base[:, 2],
        torch.exp(0.5 * base[:, 3]),
        base[:, 3] * 0.8 + 0.4 * base[:, 4],
        torch.tanh(base[:, 1] + base[:, 4]) + 0.2 * base[:, 5],
    ]
    return torch.stack(cols, dim=1) * torch.tensor([1.0, 3.0, 0.5, 2.0, 1.0, 0.7]) + torch.tensor(
        [0.0, 2.0, -1.0, 4.0, 0.0, 1.0]
    )


class ActNorm(nn.Module):
    """Per-column affine map that whitens the first batch it sees and is trained from there on."""

    def __init__(self, dim):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.initialized = False

    def initialize(self, x):
        mean = x.detach().mean(dim=0)
        std = x.detach().std(dim=0)
        self.bias = nn.Parameter(-mean)
        self.log_scale = nn.Parameter(-torch.log(std + 1e-6))
        self.initialized = True

    def forward(self, x):
        if not self.initialized:
            self.initialize(x)
        return (x + self.bias) * self.log_scale.exp(), self.log_scale.sum()


class Rotation(nn.Module):
    """Fixed random orthogonal mixing of the columns; its log-determinant is zero."""

    def __init__(self, dim):
        super().__init__()
        q, _ = torch.linalg.qr(torch.randn(dim, dim))
        self.register_buffer("q", q)

    def forward(self, x):
        return x @ self.q, torch.zeros(())


class Coupling(nn.Module):
    def __init__(self, dim, width=48):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(
            nn.Linear(self.half, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, dim - self.half),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        kept, moved = x[:, : self.half], x[:, self.half :]
        return torch.cat([kept, moved + self.net(kept)], dim=1), torch.zeros(())


class Flow(nn.Module):
    def __init__(self, dim, blocks):
        super().__init__()
        layers = []
        for _ in range(blocks):
            layers += [ActNorm(dim), Rotation(dim), Coupling(dim)]
        self.layers = nn.ModuleList(layers)

    def log_prob(self, x):
        total = x.new_zeros(len(x))
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return total - 0.5 * (x.pow(2) + math.log(2 * math.pi)).sum(dim=1)


def main():
    torch.manual_seed(23)
    train, test = make_table(4096), make_table(1024)
    flow = Flow(DIM, BLOCKS)
    optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=STEPS)

    for step in range(STEPS):
        batch = train[torch.randint(len(train), (BATCH,))]
        loss = -flow.log_prob(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if step % 50 == 0 or step == STEPS - 1:
            print(f"step {step:4d}  nll {loss.item():.4f}  grad norm {norm.item():.2f}")

    with torch.no_grad():
        test_nll = -flow.log_prob(test).mean().item()
    print(f"parameters {sum(p.numel() for p in flow.parameters())}  test nll {test_nll:.4f}")
    return flow, optimizer, test_nll


if __name__ == "__main__":
    flow, optimizer, test_nll = main()
