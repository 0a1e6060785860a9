"""A DeepONet that learns the antiderivative operator from few labels and the differential equation.

Input functions v are random Fourier sums on [0, 1], read at fixed sensors.  The operator maps v to the solution s
of ds/dy = v, s(0) = 0.  Labels exist at the two ends only; everywhere else the equation is used.
"""
import math

import torch
from torch import nn

SENSORS = 20
MODES = 2


class InputFunctions:
    """v(y) = sum_k a_k cos(w_k y) + b_k sin(w_k y), with the exact primitive."""

    def __init__(self, count, generator):
        decay = 1.0 / torch.arange(1, MODES + 1)
        self.a = torch.randn(count, 1, MODES, generator=generator) * decay
        self.b = torch.randn(count, 1, MODES, generator=generator) * decay
        self.w = math.pi * torch.arange(1, MODES + 1)

    def __call__(self, y):
        angle = y * self.w
        return (self.a * angle.cos() + self.b * angle.sin()).sum(-1, keepdim=True)

    def primitive(self, y):
        angle = y * self.w
        return ((self.a * angle.sin() + self.b * (1.0 - angle.cos())) / self.w).sum(-1, keepdim=True)

    def sensors(self):
        grid = torch.linspace(0.0, 1.0, SENSORS).view(1, SENSORS, 1)
        return self(grid).squeeze(-1)


def perceptron(*sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class DeepONet(nn.Module):
    def __init__(self, width=48, rank=32):
        super().__init__()
        self.branch = perceptron(SENSORS, width, rank)
        self.trunk = perceptron(1, width, width, rank)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, sensors, y):
        coefficients = self.branch(sensors).unsqueeze(1)
        return (coefficients * self.trunk(y)).sum(-1, keepdim=True) + self.bias


def equation_residual(s, y, functions):
    (slope,) = torch.autograd.grad(s, y, grad_outputs=torch.ones_like(s), retain_graph=True)
    return slope - functions(y)


def training_points(count, inner, generator):
    labelled = torch.tensor([0.0, 1.0]).view(1, 2, 1).expand(count, 2, 1)
    free = torch.rand(count, inner, 1, generator=generator)
    return torch.cat([labelled, free], dim=1).requires_grad_(True)


def evaluate(model, functions):
    grid = torch.linspace(0.0, 1.0, 41).view(1, 41, 1)
    with torch.no_grad():
        predicted = model(functions.sensors(), grid)
        exact = functions.primitive(grid)
    return ((predicted - exact).norm() / exact.norm()).item()


def train(model, functions, steps, generator):
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    sensors = functions.sensors()
    log = []
    for step in range(steps):
        y = training_points(len(sensors), inner=10, generator=generator)
        s = model(sensors, y)
        label_loss = (s[:, :2] - functions.primitive(y[:, :2].detach())).pow(2).mean()
        equation_loss = equation_residual(s, y, functions).pow(2).mean()
        loss = 10.0 * label_loss + equation_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        log.append((label_loss.item(), equation_loss.item()))
        if step % 40 == 0:
            print(f"step {step:3d}  labels {label_loss.item():.5f}  equation {equation_loss.item():.4f}")
    return log


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    train_functions = InputFunctions(40, generator)
    test_functions = InputFunctions(32, generator)
    model = DeepONet()
    log = train(model, train_functions, steps=180, generator=generator)
    seen, unseen = evaluate(model, train_functions), evaluate(model, test_functions)
    print(f"relative error, training functions {seen:.3f}, new functions {unseen:.3f}")
    return model, log, seen, unseen


if __name__ == "__main__":
    model, log, seen, unseen = main()
