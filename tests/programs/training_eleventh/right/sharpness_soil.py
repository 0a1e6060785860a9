"""Soil type from spectra: a small classifier trained with sharpness-aware minimisation (SAM).

Each step computes the gradient twice: once at the weights, once at the worst point in a small ball around them.  The
weights then move from where they were, with the second gradient.
"""
import contextlib

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

SEED = 41
BANDS, CLASSES = 40, 5
N_TRAIN, N_TEST = 400, 800
EPOCHS, BATCH = 30, 50
RHO = 0.05


def spectra(n, rng, peaks):
    label = rng.integers(0, CLASSES, size=n)
    grid = np.linspace(0, 1, BANDS)
    centers = peaks[label] + 0.03 * rng.normal(size=(n, peaks.shape[1]))
    signal = np.exp(-((grid[None, None] - centers[:, :, None]) / 0.06) ** 2).sum(axis=1)
    baseline = rng.normal(size=(n, 1)) * grid[None] + rng.normal(size=(n, 1))
    x = signal + 0.5 * baseline + 0.25 * rng.normal(size=(n, BANDS))
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(label)


@contextlib.contextmanager
def frozen_statistics(net):
    """Batch statistics are used, but the running ones stay as they are."""
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm1d)]
    saved = [m.momentum for m in norms]
    for m in norms:
        m.momentum = 0.0
    try:
        yield
    finally:
        for m, momentum in zip(norms, saved):
            m.momentum = momentum


class SharpnessAware:
    def __init__(self, base, rho):
        self.base = base
        self.rho = rho
        self.offset = {}

    def parameters(self):
        return [p for group in self.base.param_groups for p in group["params"] if p.grad is not None]

    @torch.no_grad()
    def climb(self):
        params = self.parameters()
        norm = torch.stack([p.grad.norm() for p in params]).norm()
        for p in params:
            self.offset[p] = p.grad * (self.rho / (norm + 1e-12))
            p.add_(self.offset[p])
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, offset in self.offset.items():
            p.sub_(offset)
        self.offset.clear()
        self.base.step()
        self.base.zero_grad()


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        hits = (net(x).argmax(dim=1) == y).float().mean().item()
    net.train()
    return hits


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    peaks = rng.uniform(0.1, 0.9, size=(CLASSES, 3))
    x, y = spectra(N_TRAIN, rng, peaks)
    x_test, y_test = spectra(N_TEST, rng, peaks)

    net = nn.Sequential(
        nn.Linear(BANDS, 64), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Linear(64, CLASSES),
    )
    base = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    sam = SharpnessAware(base, RHO)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(base, T_max=EPOCHS)

    for epoch in range(EPOCHS):
        order = torch.randperm(N_TRAIN)
        for rows in order.split(BATCH):
            loss = F.cross_entropy(net(x[rows]), y[rows], label_smoothing=0.05)
            loss.backward()
            sam.climb()
            with frozen_statistics(net):
                F.cross_entropy(net(x[rows]), y[rows], label_smoothing=0.05).backward()
            sam.descend()
        scheduler.step()
        if (epoch + 1) % 6 == 0:
            print(f"epoch {epoch + 1:2d}  loss {loss.item():.3f}  test accuracy {accuracy(net, x_test, y_test):.3f}")


if __name__ == "__main__":
    main()
