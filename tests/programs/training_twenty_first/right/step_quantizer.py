"""Quantisation-aware training with learned step sizes (LSQ) for an image classifier.

A full-precision network is trained first; its weights are copied into a 3-bit network whose
quantisation steps are learned together with the weights.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

BITS, CLASSES = 3, 6


def glyphs(n):
    """Noisy 10x10 pictures of six stroke patterns at random positions."""
    y = torch.randint(0, CLASSES, (n,))
    x = 0.3 * torch.randn(n, 1, 10, 10)
    rows, cols = torch.randint(0, 6, (n,)), torch.randint(0, 6, (n,))
    strokes = torch.zeros(CLASSES, 5, 5)
    strokes[0, 2], strokes[1, :, 2] = 1, 1
    strokes[2], strokes[3] = torch.eye(5), torch.eye(5).flip(1)
    strokes[4, 0], strokes[4, :, 0] = 1, 1
    strokes[5, 4], strokes[5, :, 4] = 1, 1
    for i in range(n):
        x[i, 0, rows[i] : rows[i] + 5, cols[i] : cols[i] + 5] += strokes[y[i]]
    return x, y


def scale_gradient(x, factor):
    return x.detach() + factor * (x - x.detach())


def round_through(x):
    return x + (x.round() - x).detach()


class LearnedStep(nn.Module):
    def __init__(self, low, high):
        super().__init__()
        self.low, self.high = low, high
        self.step = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x, count):
        if not self.ready:
            with torch.no_grad():
                self.step.copy_(2 * x.abs().mean() / math.sqrt(self.high))
            self.ready.fill_(True)
        step = scale_gradient(self.step, 1.0 / math.sqrt(count * self.high))
        return round_through((x / step).clamp(self.low, self.high)) * step


class QuantConv(nn.Conv2d):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.w_step = LearnedStep(-(2 ** (BITS - 1)), 2 ** (BITS - 1) - 1)
        self.x_step = LearnedStep(0, 2**BITS - 1)

    def forward(self, x):
        x = self.x_step(x, x[0].numel())
        weight = self.w_step(self.weight, self.weight.numel())
        return F.conv2d(x, weight, self.bias, self.stride, self.padding)


def build(conv):
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(),  # the first and the last layer stay in full precision
        conv(12, 16, 3, stride=2, padding=1), nn.ReLU(),
        conv(16, 24, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(24 * 9, CLASSES),
    )


def fit(model, optimizer, x, y, epochs):
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


x_train, y_train = glyphs(2000)
x_test, y_test = glyphs(500)

full = build(nn.Conv2d)
fit(full, torch.optim.Adam(full.parameters(), lr=3e-3), x_train, y_train, 6)
print(f"full precision  {accuracy(full, x_test, y_test):.3f}")

quant = build(QuantConv)
missing = quant.load_state_dict(full.state_dict(), strict=False)
assert not missing.unexpected_keys and all("step" in k for k in missing.missing_keys)
accuracy(quant, x_train[:256], y_train[:256])  # sets the initial steps
print(f"{BITS}-bit at start  {accuracy(quant, x_test, y_test):.3f}")
fit(quant, torch.optim.SGD(quant.parameters(), lr=0.02, momentum=0.9), x_train, y_train, 4)
print(f"{BITS}-bit trained   {accuracy(quant, x_test, y_test):.3f}")
print("steps", [round(m.step.item(), 3) for m in quant.modules() if isinstance(m, LearnedStep)])
