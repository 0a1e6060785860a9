"""Heart-beat classifier, moved over from the NumPy course version.

The course code had hand-written forward and backward passes.  The filter bank keeps its hand-written pair (it is faster
than unfold for our window sizes and we know what it does), everything around it is now ordinary PyTorch.
"""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
rng = np.random.default_rng(11)

LENGTH, WINDOW, STRIDE, FILTERS, CLASSES = 64, 9, 2, 12, 4
BATCH = 64


def make_beats(n):
    """Four shapes of a beat (single, double, inverted, notched) at a random place, with baseline wander and noise."""
    t = np.arange(LENGTH)
    x = np.zeros((n, LENGTH), dtype=np.float32)
    y = rng.integers(0, CLASSES, n)
    for i in range(n):
        c = rng.uniform(16, 48)
        bump = lambda m, s: np.exp(-0.5 * ((t - m) / s) ** 2)
        if y[i] == 0:
            s = bump(c, 2.0)
        elif y[i] == 1:
            s = bump(c - 4, 1.4) + bump(c + 4, 1.4)
        elif y[i] == 2:
            s = bump(c, 2.0) - 1.4 * bump(c + 5, 2.0)
        else:
            s = bump(c, 4.0) - 1.2 * bump(c, 1.2)
        wander = 0.3 * np.sin(2 * math.pi * t / LENGTH + rng.uniform(0, 6.28))
        x[i] = rng.uniform(0.8, 1.3) * s + wander + 0.15 * rng.standard_normal(LENGTH)
    return torch.from_numpy(x), torch.from_numpy(y)


class FilterBankFn(torch.autograd.Function):
    """out[n, p, f] = <window p of signal n, filter f> + bias f"""

    @staticmethod
    def forward(ctx, x, weight, bias):
        cols = x.unfold(1, WINDOW, STRIDE)                      # n, positions, window
        ctx.save_for_backward(cols, weight)
        ctx.length = x.shape[1]
        return cols @ weight.t() + bias

    @staticmethod
    def backward(ctx, dout):
        cols, weight = ctx.saved_tensors
        n, positions, _ = dout.shape
        flat = dout.reshape(n * positions, -1)
        dw = flat.t() @ cols.reshape(n * positions, -1) / n
        db = flat.sum(0) / n
        dcols = dout @ weight
        dx = dout.new_zeros(n, ctx.length)
        for p in range(positions):
            dx[:, p * STRIDE:p * STRIDE + WINDOW] += dcols[:, p]
        return dx, dw, db


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(FILTERS, WINDOW) / math.sqrt(WINDOW))
        self.bias = nn.Parameter(torch.zeros(FILTERS))
        self.out = nn.Linear(2 * FILTERS, CLASSES)

    def forward(self, x):
        h = F.relu(FilterBankFn.apply(x, self.weight, self.bias))
        return self.out(torch.cat([h.amax(1), h.mean(1)], dim=1))


def accuracy(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


x_train, y_train = make_beats(2048)
x_test, y_test = make_beats(1024)
net = BeatNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

for epoch in range(12):
    order = torch.randperm(len(x_train))
    total = 0.0
    for start in range(0, len(x_train), BATCH):
        idx = order[start:start + BATCH]
        loss = F.cross_entropy(net(x_train[idx]), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d}  loss {total / len(x_train):.4f}  test accuracy {accuracy(net, x_test, y_test):.3f}")

test_accuracy = accuracy(net, x_test, y_test)
print(f"final test accuracy {test_accuracy:.3f}")
