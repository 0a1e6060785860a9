"""Few-shot regression of daily temperature curves: Reptile over many weather stations."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

META_STEPS = 100
INNER_STEPS = 8
INNER_LR = 0.05
META_LR = 0.5
SHOTS = 10


class CurveNet(nn.Module):
    """Temperature anomaly as a function of the hour, scaled to [-1, 1]."""

    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1)
        )

    def forward(self, hour):
        return self.net(hour)


class Station:
    """One station: a day curve with its own amplitude and peak hour."""

    def __init__(self, generator):
        amp, peak = torch.rand(2, generator=generator).tolist()
        self.amp = 0.5 + 2.0 * amp
        self.peak = math.pi * peak
        self.generator = generator

    def curve(self, hour):
        return self.amp * torch.sin(math.pi * hour + self.peak)

    def sample(self, n):
        hour = 2 * torch.rand(n, 1, generator=self.generator) - 1
        return hour, self.curve(hour) + 0.05 * torch.randn(n, 1, generator=self.generator)


def adapt(model, hour, temp, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=INNER_LR)
    for _ in range(steps):
        loss = F.mse_loss(model(hour), temp)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def reptile_step(model, station, meta_lr):
    """Move the initial weights a part of the way to the weights adapted to one station."""
    start = model.state_dict()
    hour, temp = station.sample(2 * SHOTS)
    loss = adapt(model, hour, temp, INNER_STEPS)
    adapted = model.state_dict()
    model.load_state_dict({k: start[k] + meta_lr * (adapted[k] - start[k]) for k in start})
    return loss


def few_shot_error(model, stations):
    grid = torch.linspace(-1, 1, 50)[:, None]
    errors = []
    for station in stations:
        learner = copy.deepcopy(model)
        hour, temp = station.sample(SHOTS)
        adapt(learner, hour, temp, INNER_STEPS)
        with torch.no_grad():
            errors.append(F.mse_loss(learner(grid), station.curve(grid)).item())
    return sum(errors) / len(errors)


def main():
    torch.manual_seed(11)
    train_generator = torch.Generator().manual_seed(5)
    model = CurveNet()
    for step in range(META_STEPS):
        meta_lr = META_LR * (1 - step / META_STEPS)
        loss = reptile_step(model, Station(train_generator), meta_lr)
        if step % 50 == 0:
            print(f"meta step {step:3d}  inner loss {loss:.4f}  meta lr {meta_lr:.3f}")

    test_generator = torch.Generator().manual_seed(77)
    test_stations = [Station(test_generator) for _ in range(15)]
    error = few_shot_error(model, test_stations)
    print(f"new stations, {SHOTS} shots, {INNER_STEPS} steps: mse {error:.4f}")
    return model, error


if __name__ == "__main__":
    model, error = main()
