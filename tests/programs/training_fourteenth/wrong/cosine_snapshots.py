"""Snapshot ensemble (Huang et al., 2017) on a noisy three-channel texture task.

The learning rate follows a cosine from its peak to nearly zero once per cycle. A copy of the network is kept at
the end of every cycle, and the ensemble averages the softmax outputs of the last snapshots.
"""
import argparse
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--cycles", type=int, default=4)
    p.add_argument("--epochs-per-cycle", type=int, default=4)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--peak", type=float, default=0.15)
    p.add_argument("--floor", type=float, default=5e-4)
    p.add_argument("--ensemble", type=int, default=3)
    p.add_argument("--seed", type=int, default=5)
    return p.parse_args([])


def textures(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 8, size=n)
    freq = 1 + y % 4
    angle = np.where(y < 4, 0.35, 1.2) + rng.normal(0, 0.12, size=n)
    grid = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    u = np.cos(angle)[:, None, None] * grid[None, :, None] + np.sin(angle)[:, None, None] * grid[None, None, :]
    phase = rng.uniform(0, 2 * np.pi, size=(n, 3))
    x = np.sin(freq[:, None, None, None] * u[:, None] + phase[:, :, None, None])
    x += rng.normal(0, 1.1, size=x.shape)
    flip = rng.random(n) < 0.05
    y[flip] = rng.integers(0, 8, size=flip.sum())
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def build():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveAvgPool2d(3),
        nn.Flatten(), nn.Linear(24 * 9, 8))


def augment(x):
    shift = torch.randint(-2, 3, (2,)).tolist()
    x = torch.roll(x, shift, dims=(2, 3))
    return x + 0.1 * torch.randn_like(x)


def make_optimizer(net, args):
    decay = [p for p in net.parameters() if p.dim() > 1]
    plain = [p for p in net.parameters() if p.dim() == 1]
    return torch.optim.SGD([{"params": decay, "weight_decay": 5e-4}, {"params": plain, "weight_decay": 0.0}],
                           lr=args.peak, momentum=0.9)


@torch.no_grad()
def probabilities(net, x):
    net.eval()
    return F.softmax(net(x), dim=1)


def accuracy(p, y):
    return (p.argmax(1) == y).float().mean().item()


def main():
    args = parse()
    torch.manual_seed(args.seed)
    train_x, train_y = textures(1024, seed=1)
    test_x, test_y = textures(2000, seed=2)
    net = build()
    optimizer = make_optimizer(net, args)
    per_cycle = args.epochs_per_cycle * (len(train_x) // args.batch)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=per_cycle, eta_min=args.floor)

    snapshots, singles = [], []
    for cycle in range(args.cycles):
        if cycle > 0:
            optimizer = make_optimizer(net, args)  # leave the old minimum without its momentum
        losses = []
        for epoch in range(args.epochs_per_cycle):
            net.train()
            for idx in torch.randperm(len(train_x)).split(args.batch):
                loss = F.cross_entropy(net(augment(train_x[idx])), train_y[idx], label_smoothing=0.05)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scheduler.step()
                losses.append(loss.item())
        snapshots.append(copy.deepcopy(net))
        singles.append(accuracy(probabilities(net, test_x), test_y))
        print(f"cycle {cycle + 1}: train loss {np.mean(losses[-per_cycle // 4:]):.3f}  snapshot accuracy {singles[-1]:.3f}")

    mean_p = torch.stack([probabilities(s, test_x) for s in snapshots[-args.ensemble:]]).mean(0)
    ensemble = accuracy(mean_p, test_y)
    print(f"mean of the snapshots {np.mean(singles):.3f}  ensemble of the last {args.ensemble}: {ensemble:.3f}")


if __name__ == "__main__":
    main()
