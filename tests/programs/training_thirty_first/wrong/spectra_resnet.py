"""Concentration of two substances from noisy absorption spectra, with a residual net of sparse updates."""
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(11)

CHANNELS, WIDTH, DEPTH = 40, 32, 5
TRAIN, TEST, BATCH, EPOCHS = 768, 256, 64, 9
THRESHOLD = 0.5


class SoftShrink(torch.autograd.Function):
    """sign(x) * max(|x| - threshold, 0), one saved mask instead of the saved input."""

    @staticmethod
    def forward(ctx, x, threshold):
        inside = x.abs() <= threshold
        ctx.save_for_backward(inside)
        return torch.where(inside, torch.zeros_like(x), x - threshold * x.sign())

    @staticmethod
    def backward(ctx, grad_output):
        inside, = ctx.saved_tensors
        grad_input = grad_output.masked_fill_(inside, 0.0)
        return grad_input, None


class ShrinkBlock(nn.Module):
    def __init__(self, width, threshold):
        super().__init__()
        self.threshold = threshold
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)
        nn.init.orthogonal_(self.mix.weight, gain=0.7)
        nn.init.zeros_(self.mix.bias)

    def forward(self, x):
        update = SoftShrink.apply(self.mix(self.norm(x)), self.threshold)
        return x + update


class SpectraNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(CHANNELS, WIDTH)
        self.blocks = nn.Sequential(*[ShrinkBlock(WIDTH, THRESHOLD) for _ in range(DEPTH)])
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2))

    def forward(self, spectra):
        return self.head(self.blocks(self.stem(spectra)))


def make_spectra(count):
    """Two overlapping absorption bands with saturation, on a random baseline."""
    grid = torch.linspace(0, 1, CHANNELS)
    amounts = torch.rand(count, 2) * 2
    centre = torch.tensor([0.42, 0.55])
    bands = torch.exp(-((grid - centre[:, None]) / 0.09) ** 2)
    signal = 1 - torch.exp(-amounts @ bands)
    tilt = 0.3 * torch.randn(count, 1) * grid + 0.2 * torch.randn(count, 1)
    ripple = 0.1 * torch.sin(2 * math.pi * (3 * grid + torch.rand(count, 1)))
    return signal + tilt + ripple + 0.02 * torch.randn(count, CHANNELS), amounts - 1


@torch.no_grad()
def rmse(model, spectra, amounts):
    model.eval()
    error = (model(spectra) - amounts).square().mean().sqrt().item()
    model.train()
    return error


train_x, train_y = make_spectra(TRAIN)
test_x, test_y = make_spectra(TEST)
mean, std = train_x.mean(dim=0), train_x.std(dim=0)
train_x, test_x = (train_x - mean) / std, (test_x - mean) / std

model = SpectraNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)

for epoch in range(EPOCHS):
    total = 0.0
    for rows in torch.randperm(TRAIN).split(BATCH):
        loss = F.mse_loss(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    if (epoch + 1) % 3 == 0:
        print(f"epoch {epoch + 1:2d}  train mse {total / TRAIN:.4f}  test rmse {rmse(model, test_x, test_y):.4f}")
