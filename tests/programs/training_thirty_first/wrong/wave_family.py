"""Reptile on a family of waves: find initial weights from which a few steps fit a new amplitude and phase."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Wave:
    """One task: y = amplitude * sin(x + phase)."""

    def __init__(self):
        self.amplitude = 0.5 + 2.0 * torch.rand(1).item()
        self.phase = math.pi * torch.rand(1).item()

    def draw(self, count):
        x = 10 * torch.rand(count, 1) - 5
        return x, self(x)

    def __call__(self, x):
        return self.amplitude * torch.sin(x + self.phase)


class Regressor(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x / 2.0)


def adapt(model, x, y, steps, lr):
    """Plain gradient steps on one task, in place."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loss = None
    for _ in range(steps):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


class Reptile:
    """Moves the initial weights a fraction of the way towards the weights adapted to a task."""

    def __init__(self, model, inner_steps=12, inner_lr=0.05):
        self.model = model
        self.inner_steps = inner_steps
        self.inner_lr = inner_lr

    def meta_step(self, task, epsilon):
        before = self.model.state_dict()
        x, y = task.draw(24)
        loss = adapt(self.model, x, y, self.inner_steps, self.inner_lr)
        after = self.model.state_dict()
        self.model.load_state_dict(
            {name: before[name] + epsilon * (after[name] - before[name]) for name in before}
        )
        return loss


def few_shot_error(model, tasks, shots=10, steps=12, lr=0.05):
    """Mean error on each new task after adapting a copy on a handful of points."""
    grid = torch.linspace(-5, 5, 100).unsqueeze(1)
    total = 0.0
    for task, (x, y) in tasks:
        learner = copy.deepcopy(model)
        adapt(learner, x[:shots], y[:shots], steps, lr)
        with torch.no_grad():
            total += F.mse_loss(learner(grid), task(grid)).item()
    return total / len(tasks)


def make_tests(count):
    tests = []
    for _ in range(count):
        task = Wave()
        tests.append((task, task.draw(10)))
    return tests


def main():
    torch.manual_seed(21)
    model = Regressor()
    tests = make_tests(8)
    learner = Reptile(model)
    rounds = 100
    print(f"few-shot error before: {few_shot_error(model, tests):.3f}")
    running = None
    for i in range(rounds):
        epsilon = 0.6 * (1 - i / rounds)
        loss = learner.meta_step(Wave(), epsilon)
        running = loss if running is None else 0.95 * running + 0.05 * loss
        if (i + 1) % 50 == 0:
            print(f"round {i + 1:4d}  epsilon {epsilon:.3f}  inner loss {running:.3f}  "
                  f"few-shot error {few_shot_error(model, tests):.3f}")


if __name__ == "__main__":
    main()
