"""Deep ensemble with Gaussian outputs for one-dimensional regression with a gap in the inputs."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_data(n, generator):
    left = torch.rand(n // 2, 1, generator=generator) * 2 - 4
    right = torch.rand(n - n // 2, 1, generator=generator) * 2 + 2
    x = torch.cat([left, right])
    y = torch.sin(1.5 * x) + 0.1 * x + 0.1 * torch.randn(n, 1, generator=generator)
    return x, y


class GaussianMLP(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1, hidden), nn.Tanh(),
            nn.Linear(hidden, hidden), nn.Tanh(),
        )
        self.mean = nn.Linear(hidden, 1)
        self.raw_var = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), F.softplus(self.raw_var(h)) + 1e-4


class DeepEnsemble(nn.Module):
    def __init__(self, size, hidden=48):
        super().__init__()
        self.members = nn.ModuleList([GaussianMLP(hidden)] * size)

    def forward(self, x):
        outputs = [member(x) for member in self.members]
        means = torch.stack([m for m, _ in outputs])
        variances = torch.stack([v for _, v in outputs])
        mean = means.mean(0)
        aleatoric = variances.mean(0)
        epistemic = means.var(0, unbiased=False)
        return mean, aleatoric, epistemic


def gaussian_nll(mean, var, y):
    return 0.5 * (var.log() + (y - mean) ** 2 / var + math.log(2 * math.pi)).mean()


def train(ensemble, x, y, epochs, batch, lr):
    optimizer = torch.optim.Adam(ensemble.parameters(), lr=lr, weight_decay=1e-5)
    losses = []
    for epoch in range(epochs):
        total = 0.0
        for member in ensemble.members:
            order = torch.randperm(x.size(0))
            for idx in order.split(batch):
                mean, var = member(x[idx])
                loss = gaussian_nll(mean, var, y[idx])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
        losses.append(total)
        if epoch % 10 == 0:
            print(f"epoch {epoch} nll {total / len(ensemble.members):.4f}")
    return losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()

    torch.manual_seed(0)
    x, y = make_data(128, torch.Generator().manual_seed(7))
    ensemble = DeepEnsemble(args.members)
    train(ensemble, x, y, args.epochs, args.batch, args.lr)

    ensemble.eval()
    grid = torch.linspace(-6, 6, 61).unsqueeze(1)
    with torch.no_grad():
        mean, aleatoric, epistemic = ensemble(grid)
    gap = (grid.abs() < 1.5).squeeze(1)
    print(f"uncertainty in the gap: {(aleatoric + epistemic)[gap].mean().sqrt():.3f}")
    print(f"uncertainty on the data: {(aleatoric + epistemic)[~gap].mean().sqrt():.3f}")
    return ensemble, epistemic


if __name__ == "__main__":
    ensemble, epistemic = main()
