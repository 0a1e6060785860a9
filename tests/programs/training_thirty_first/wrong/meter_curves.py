"""Finds a starting point for the response curves of flow meters.

A new meter is then fitted from ten readings in a few gradient steps. The shared weights are moved, meter by meter, a
part of the way towards the weights that fit that meter (first-order meta-learning).
"""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F


class Meter:
    """One meter: its response is a shifted and scaled wave over the flow."""

    def __init__(self, gain, phase, generator):
        self.gain = gain
        self.phase = phase
        self.generator = generator

    def readings(self, count):
        flow = 6.0 * torch.rand(count, 1, generator=self.generator) - 3.0
        return flow, self.gain * torch.sin(flow + self.phase)


class MeterFamily:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def sample(self):
        gain = 0.5 + 1.5 * torch.rand(1, generator=self.generator).item()
        phase = math.pi * torch.rand(1, generator=self.generator).item()
        return Meter(gain, phase, self.generator)


class CurveNet(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, flow):
        return self.layers(flow)


def fit(model, flow, response, steps, lr):
    """Plain gradient descent on the readings of one meter; returns the last loss."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        loss = F.mse_loss(model(flow), response)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


class StartingPoint:
    def __init__(self, model, step_size, iterations, inner_steps=8, inner_lr=0.03):
        self.model = model
        self.step_size = step_size
        self.iterations = iterations
        self.inner_steps = inner_steps
        self.inner_lr = inner_lr

    def update(self, meter, iteration):
        step_size = self.step_size * (1.0 - iteration / self.iterations)
        start = {name: p.detach() for name, p in self.model.named_parameters()}
        flow, response = meter.readings(24)
        loss = fit(self.model, flow, response, self.inner_steps, self.inner_lr)
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                p.copy_(start[name] + step_size * (p - start[name]))
        return loss


def new_meter_error(model, meters=8, shots=10):
    """Mean squared error on unseen meters after the short fit that is used in the field."""
    family = MeterFamily(seed=900)
    errors = []
    for _ in range(meters):
        meter = family.sample()
        fitted = copy.deepcopy(model)
        flow, response = meter.readings(shots)
        fit(fitted, flow, response, steps=8, lr=0.03)
        flow, response = meter.readings(60)
        with torch.no_grad():
            errors.append(F.mse_loss(fitted(flow), response).item())
    return sum(errors) / len(errors)


def main():
    torch.manual_seed(5)
    iterations = 90
    model = CurveNet()
    learner = StartingPoint(model, step_size=0.3, iterations=iterations)
    family = MeterFamily(seed=7)
    print(f"before: error on new meters {new_meter_error(model):.4f}")
    for iteration in range(iterations):
        loss = learner.update(family.sample(), iteration)
        if (iteration + 1) % 30 == 0:
            print(f"iteration {iteration + 1:4d}  fit {loss:.4f}  error on new meters {new_meter_error(model):.4f}")
    return model


if __name__ == "__main__":
    trained = main()
