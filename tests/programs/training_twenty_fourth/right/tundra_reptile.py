"""Reptile: learn an initialisation that fits a new daily temperature curve from a few readings."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Station:
    """One weather station: mean, amplitude and phase of its curve over the day (t in [-1, 1])."""

    def __init__(self, gen):
        u = torch.rand(3, generator=gen)
        self.mean, self.amplitude, self.phase = 2 * u[0] - 1, 0.6 + 1.4 * u[1], math.pi * (u[2] - 0.5)
        self.gen = gen

    def readings(self, k):
        t = 2 * torch.rand(k, 1, generator=self.gen) - 1
        y = self.mean + self.amplitude * torch.sin(math.pi * t + self.phase)
        return t, y + 0.03 * torch.randn(k, 1, generator=self.gen)


class Curve(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                    nn.Linear(width, 1))

    def forward(self, t):
        return self.layers(t)


def adapt(model, t, y, steps, lr, batch=None):
    """Plain SGD on a copy; the caller's model stays as it is."""
    fast = copy.deepcopy(model)
    sgd = torch.optim.SGD(fast.parameters(), lr=lr)
    for _ in range(steps):
        idx = torch.randperm(len(t))[:batch] if batch else slice(None)
        loss = F.mse_loss(fast(t[idx]), y[idx])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    return fast, loss.item()


class Reptile:
    def __init__(self, model, outer_lr, inner_lr, inner_steps, tasks_per_step):
        self.model = model
        self.inner = dict(lr=inner_lr, steps=inner_steps, batch=10)
        self.tasks_per_step = tasks_per_step
        self.outer = torch.optim.SGD(model.parameters(), lr=outer_lr)
        self.base_lr = outer_lr

    def step(self, gen, progress):
        self.outer.zero_grad()
        mean_loss = 0.0
        for _ in range(self.tasks_per_step):
            fast, last = adapt(self.model, *Station(gen).readings(20), **self.inner)
            mean_loss += last / self.tasks_per_step
            for slow, quick in zip(self.model.parameters(), fast.parameters()):
                delta = (slow.data - quick.data) / self.tasks_per_step
                slow.grad = delta if slow.grad is None else slow.grad + delta
        for group in self.outer.param_groups:
            group["lr"] = self.base_lr * (1.0 - progress)
        self.outer.step()
        return mean_loss


def few_shot_error(model, n_stations=40, shots=10, steps=16, lr=0.03):
    """Adapts to readings of unseen stations and tests on other readings of the same stations."""
    gen = torch.Generator().manual_seed(404)
    before = after = 0.0
    for _ in range(n_stations):
        station = Station(gen)
        fast, _ = adapt(model, *station.readings(shots), steps=steps, lr=lr)
        t, y = station.readings(50)
        with torch.no_grad():
            before += F.mse_loss(model(t), y).item() / n_stations
            after += F.mse_loss(fast(t), y).item() / n_stations
    return before, after


def main(meta_steps=150):
    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(31)
    model = Curve()
    print("untrained: before %.3f  after adaptation %.3f" % few_shot_error(model))
    meta = Reptile(model, outer_lr=1.0, inner_lr=0.03, inner_steps=8, tasks_per_step=4)
    for i in range(meta_steps):
        last = meta.step(gen, i / meta_steps)
        if (i + 1) % 50 == 0:
            print(f"meta step {i + 1}  inner loss {last:.3f}")
    before, after = few_shot_error(model)
    print(f"trained: before {before:.3f}  after adaptation {after:.3f}")
    return model


if __name__ == "__main__":
    main()
