"""Few-shot regression of sine waves with Reptile.

A small network is meta-trained over a family of waves so that a few gradient steps on ten points of a new wave
give a usable fit.
"""
import copy
import math

import torch
from torch import nn

SHOTS = 10
INNER_STEPS = 8
INNER_LR = 0.02
META_LR = 0.25
META_ITERS = 120
TEST_TASKS = 12


class WaveTask:
    """One wave of the family, with its own amplitude and phase."""

    def __init__(self):
        self.amplitude = 0.5 + 2.0 * torch.rand(()).item()
        self.phase = math.pi * torch.rand(()).item()

    def value(self, x):
        return self.amplitude * torch.sin(x + self.phase)

    def sample(self, count):
        x = 8.0 * torch.rand(count, 1) - 4.0
        return x, self.value(x)


class Regressor(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x)


def adapt(net, x, y, steps):
    """Plain SGD on the points of one task; returns the loss of the last step."""
    optimizer = torch.optim.SGD(net.parameters(), lr=INNER_LR)
    for _ in range(steps):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def meta_update(net, task, meta_lr):
    """Adapt to one task, then go a fraction of the way from the old weights to the adapted ones."""
    weights_before = net.state_dict()
    x, y = task.sample(SHOTS)
    inner_loss = adapt(net, x, y, INNER_STEPS)
    weights_after = net.state_dict()
    net.load_state_dict(
        {
            name: weights_before[name] + meta_lr * (weights_after[name] - weights_before[name])
            for name in weights_before
        }
    )
    return inner_loss


def evaluate(net, tasks):
    """Mean error on new waves before and after adapting a copy of the network to ten points."""
    grid = torch.linspace(-4.0, 4.0, 60).unsqueeze(1)
    before, after = [], []
    for task in tasks:
        learner = copy.deepcopy(net)
        with torch.no_grad():
            before.append(nn.functional.mse_loss(learner(grid), task.value(grid)).item())
        x, y = task.sample(SHOTS)
        adapt(learner, x, y, 2 * INNER_STEPS)
        with torch.no_grad():
            after.append(nn.functional.mse_loss(learner(grid), task.value(grid)).item())
    return sum(before) / len(before), sum(after) / len(after)


torch.manual_seed(7)
net = Regressor()
test_tasks = [WaveTask() for _ in range(TEST_TASKS)]

running = None
for iteration in range(META_ITERS):
    meta_lr = META_LR * (1.0 - iteration / META_ITERS)
    inner_loss = meta_update(net, WaveTask(), meta_lr)
    running = inner_loss if running is None else 0.95 * running + 0.05 * inner_loss
    if (iteration + 1) % 30 == 0:
        print(f"iteration {iteration + 1:4d}  meta lr {meta_lr:.3f}  inner loss {running:.3f}")

before, after = evaluate(net, test_tasks)
print(f"new waves: error {before:.3f} before and {after:.3f} after {2 * INNER_STEPS} steps on {SHOTS} points")
