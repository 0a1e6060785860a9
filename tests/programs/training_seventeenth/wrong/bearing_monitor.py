"""Bearing fault classification from raw accelerometer windows; the averaged weights are the ones we ship."""
import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

RATE = 1000
WINDOW = 256
CLASSES = ("healthy", "inner", "outer", "ball")


def simulate(n, rng):
    t = np.arange(WINDOW) / RATE
    xs, ys = [], []
    for _ in range(n):
        label = rng.integers(len(CLASSES))
        shaft = rng.uniform(24, 30)
        sig = 3.0 * np.sin(2 * math.pi * shaft * t + rng.uniform(0, 6.28))
        if label:
            rate = shaft * (0.0, 5.4, 3.6, 2.3)[label]
            carrier = (0.0, 180.0, 240.0, 320.0)[label]
            phase = (t * rate + rng.uniform()) % 1.0
            sig = sig + 2.5 * np.exp(-6 * phase) * np.sin(2 * math.pi * carrier * t)
        sig = sig + rng.standard_normal(WINDOW) * 1.2
        xs.append(sig)
        ys.append(label)
    x = torch.tensor(np.stack(xs), dtype=torch.float32)[:, None] + 1.0  # sensor offset in g
    return x, torch.tensor(ys)


class ConvUnit(nn.Module):
    def __init__(self, c_in, c_out, kernel, stride):
        super().__init__()
        self.conv = nn.Conv1d(c_in, c_out, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm1d(c_out)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class FaultNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(ConvUnit(1, 16, 15, 2), ConvUnit(16, 32, 7, 2), ConvUnit(32, 32, 5, 2))
        self.head = nn.Linear(32, len(CLASSES))

    def forward(self, x):
        return self.head(self.body(x).mean(-1))


class WeightAverager:
    """Exponential moving average of a model, with the usual warm-up of the decay."""

    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.steps = 0
        self.shadow = copy.deepcopy(model).eval()
        for p in self.shadow.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        self.steps += 1
        d = min(self.decay, (1 + self.steps) / (10 + self.steps))
        for avg, p in zip(self.shadow.parameters(), model.parameters()):
            avg.mul_(d).add_(p, alpha=1 - d)


@torch.no_grad()
def accuracy(model, x, y):
    was_training = model.training
    model.eval()
    acc = (model(x).argmax(1) == y).float().mean().item()
    model.train(was_training)
    return acc


def main():
    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    train_x, train_y = simulate(768, rng)
    test_x, test_y = simulate(256, rng)
    loader = DataLoader(TensorDataset(train_x, train_y), batch_size=32, shuffle=True, drop_last=True)
    model = FaultNet()
    ema = WeightAverager(model)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    for epoch in range(5):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update(model)
        print(f"epoch {epoch} loss {loss.item():.3f}")
    shipped = accuracy(ema.shadow, test_x, test_y)
    print(f"test accuracy of the shipped model {shipped:.3f}")
    return model, ema, shipped, accuracy(model, test_x, test_y)


if __name__ == "__main__":
    model, ema, shipped, online = main()
