"""Tide heights from the harmonics of moon and sun; evaluation uses averaged weights, training goes on with its own."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PERIODS = (12.42, 12.0, 23.93, 25.82)
STEPS = 300


def make_tides(hours):
    t = torch.arange(hours, dtype=torch.float32)
    height = torch.zeros(hours)
    for period, size, phase in zip(PERIODS, (1.2, 0.5, 0.3, 0.2), (0.3, 1.1, 2.0, 0.6)):
        height += size * torch.cos(2 * math.pi * t / period + phase)
    height += 0.15 * height**2 + 0.1 * torch.randn(hours)
    angles = torch.stack([2 * math.pi * t / p for p in PERIODS], dim=1)
    return torch.cat([angles.sin(), angles.cos()], dim=1), height


class TideNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.register_buffer("scale", torch.ones(()))
        self.net = nn.Sequential(
            nn.Linear(2 * len(PERIODS), width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def fit_scale(self, heights):
        self.scale.copy_(heights.std())

    def forward(self, x):
        return self.scale * self.net(x).squeeze(-1)


class EMA:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.updates = 0
        self.shadow = {}
        self.backup = {}

    def register(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = (1.0 - decay) * param.data + decay * self.shadow[name]

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                param.data = self.backup[name]
        self.backup = {}


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    error = F.mse_loss(model(x), y).item()
    model.train()
    return error


def train(model, train_set, valid_set):
    x, y = train_set
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS, eta_min=0.005)
    ema = EMA(model, decay=0.97)
    ema.register()
    best_error, best_model = float("inf"), None
    for step in range(1, STEPS + 1):
        rows = torch.randint(0, len(x), (64,))
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        ema.update()
        if step % 30 == 0:
            own = evaluate(model, *valid_set)
            ema.apply_shadow()
            averaged = evaluate(model, *valid_set)
            if averaged < best_error:
                best_error, best_model = averaged, copy.deepcopy(model)
            ema.restore()
            print(f"step {step:4d}  own weights {own:.4f}  averaged {averaged:.4f}")
    return ema, best_error, best_model


def main():
    torch.manual_seed(8)
    x, y = make_tides(3000)
    train_set, valid_set, test_set = (x[:2000], y[:2000]), (x[2000:2500], y[2000:2500]), (x[2500:], y[2500:])
    model = TideNet()
    model.fit_scale(train_set[1])
    ema, best_error, best_model = train(model, train_set, valid_set)
    print(f"best on validation {best_error:.4f}, on test {evaluate(best_model, *test_set):.4f}")
    return model, ema, best_error, best_model, valid_set


if __name__ == "__main__":
    model, ema, best_error, best_model, valid_set = main()
