"""Day-ahead electricity load forecasting with a magnitude-pruned MLP.

Train dense, prune 85 % of the hidden weights by magnitude, fine-tune the sparse network,
and report the error and the size of the network that would be shipped.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)

LOOKBACK, HORIZON = 72, 24
SPARSITY = 0.85


def synth_load(hours=4000):
    t = torch.arange(hours, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(4 * math.pi * t / 24 + 0.7)
    weekly = 0.5 * torch.cos(2 * math.pi * t / 168)
    weather = torch.zeros(hours)
    for i in range(1, hours):
        weather[i] = 0.97 * weather[i - 1] + 0.1 * torch.randn(())
    return daily * (1 + 0.3 * weekly) + weekly + weather + 0.05 * torch.randn(hours)


def windows(series):
    frames = series.unfold(0, LOOKBACK + HORIZON, 1)
    return frames[:, :LOOKBACK].contiguous(), frames[:, LOOKBACK:].contiguous()


class Forecaster(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.inp = nn.Linear(LOOKBACK, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, HORIZON)

    def forward(self, x):
        level = x[:, -24:].mean(1, keepdim=True)
        h = F.gelu(self.inp(x - level))
        h = F.gelu(self.mid(h))
        return self.out(h) + level


def magnitude_masks(model, sparsity):
    masks = {}
    for name, p in model.named_parameters():
        if p.dim() == 2 and not name.startswith("out"):
            k = int(sparsity * p.numel())
            threshold = p.detach().abs().flatten().kthvalue(k).values
            masks[name] = (p.detach().abs() > threshold).float()
    return masks


@torch.no_grad()
def apply_masks(model, masks):
    for name, p in model.named_parameters():
        if name in masks:
            p.mul_(masks[name])


def density(model, masks):
    kept = total = 0
    for name, p in model.named_parameters():
        if name in masks:
            kept += (p != 0).sum().item()
            total += p.numel()
    return kept / total


def train(model, opt, x, y, steps, masks=None):
    for _ in range(steps):
        idx = torch.randint(0, len(x), (128,))
        loss = F.smooth_l1_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        if masks is not None:
            for name, p in model.named_parameters():
                if name in masks:
                    p.grad.mul_(masks[name])
        opt.step()


series = synth_load()
x_train, y_train = windows(series[:3200])
x_test, y_test = windows(series[3200:])

model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def test_mae():
    with torch.no_grad():
        return (model(x_test) - y_test).abs().mean().item()


train(model, optimizer, x_train, y_train, 400)
print(f"dense        mae {test_mae():.4f}")

masks = magnitude_masks(model, SPARSITY)
apply_masks(model, masks)
pruned_density = density(model, masks)
print(f"after prune  mae {test_mae():.4f}  density {pruned_density:.3f}")

train(model, optimizer, x_train, y_train, 400, masks)
final_density = density(model, masks)
print(f"fine-tuned   mae {test_mae():.4f}  density {final_density:.3f}")
