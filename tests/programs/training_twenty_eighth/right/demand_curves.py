"""Hourly demand with a causal convolutional network and sharpness-aware minimisation."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

PAST, AHEAD = 48, 12


def demand(hours, generator):
    time = torch.arange(hours, dtype=torch.float32)
    shape = torch.sin(2 * math.pi * time / 24) + 0.5 * torch.sin(4 * math.pi * time / 24 + 1)
    week = 1 + 0.3 * torch.sin(2 * math.pi * time / 168)
    return shape * week + 0.1 * torch.randn(hours, generator=generator)


def windows(series, stride):
    pieces = series.unfold(0, PAST + AHEAD, stride)
    return pieces[:, :PAST].unsqueeze(1).contiguous(), pieces[:, PAST:].contiguous()


class CausalBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.reach = 2 * dilation
        self.conv = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.gain = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.gain * F.relu(self.conv(F.pad(x, (self.reach, 0))))


class DemandNet(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.entry = nn.Conv1d(1, channels, 1)
        self.blocks = nn.Sequential(*[CausalBlock(channels, 2**i) for i in range(4)])
        self.output = nn.Linear(channels * 2, AHEAD)

    def forward(self, past):
        hidden = self.blocks(self.entry(past))
        return self.output(torch.cat([hidden[..., -1], hidden[..., -13]], dim=1))


class SharpnessAware(torch.optim.Optimizer):
    """Steps with the gradient taken at the worst point of a small ball around the weights."""

    def __init__(self, params, base_class, rho=0.02, **options):
        super().__init__(params, dict(rho=rho, **options))
        self.base = base_class(self.param_groups, **options)
        self.param_groups = self.base.param_groups
        self.saved = {}

    @torch.no_grad()
    def climb(self):
        held = [(p, group["rho"]) for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([p.grad.norm() for p, _ in held]).norm()
        for p, rho in held:
            self.saved[p] = p.detach().clone()
            p.add_(p.grad * (rho / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, weights in self.saved.items():
            p.data = weights
        self.saved.clear()
        self.base.step()
        self.zero_grad()


def moving_average(average, model, decay):
    with torch.no_grad():
        for kept, current in zip(average.parameters(), model.parameters()):
            kept.lerp_(current, 1 - decay)


def train_epoch(model, average, optimizer, past, ahead):
    total = 0.0
    for chosen in torch.randperm(len(past)).split(32):
        loss = F.mse_loss(model(past[chosen]), ahead[chosen])
        loss.backward()
        optimizer.climb()
        F.mse_loss(model(past[chosen]), ahead[chosen]).backward()
        optimizer.descend()
        moving_average(average, model, 0.95)
        total += loss.item() * len(chosen)
    return total / len(past)


@torch.no_grad()
def error(model, past, ahead):
    return F.mse_loss(model(past), ahead).item()


def main(epochs=9):
    torch.manual_seed(12)
    generator = torch.Generator().manual_seed(37)
    series = demand(24 * 150, generator)
    past, ahead = windows(series[: 24 * 120], stride=5)
    test = windows(series[24 * 120 :], stride=5)
    model = DemandNet()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = SharpnessAware(model.parameters(), torch.optim.Adam, lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base, T_max=epochs)
    for epoch in range(epochs):
        loss = train_epoch(model, average, optimizer, past, ahead)
        schedule.step()
        if (epoch + 1) % 3 == 0:
            print(f"epoch {epoch + 1:2d}  loss {loss:.4f}  test {error(model, *test):.4f}  average {error(average, *test):.4f}")
    return model, average, optimizer


if __name__ == "__main__":
    model, average, optimizer = main()
