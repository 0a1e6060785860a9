"""Reptile on sinusoid regression: learn an initialisation that adapts in a few gradient steps."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SineTask:
    def __init__(self, generator):
        u = torch.rand(2, generator=generator)
        self.amplitude = 0.5 + 3.0 * u[0].item()
        self.phase = math.pi * u[1].item()
        self.generator = generator

    def sample(self, count):
        x = 10.0 * torch.rand(count, 1, generator=self.generator) - 5.0
        return x, self.amplitude * torch.sin(x + self.phase)


class Regressor(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x / 2.5))


def adapt(model, x, y, steps, lr):
    """Plain SGD on one task; returns the last loss."""
    inner = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        loss = F.mse_loss(model(x), y)
        inner.zero_grad()
        loss.backward()
        inner.step()
    return loss.item()


class Reptile:
    def __init__(self, model, inner_lr=0.05, inner_steps=12, outer_lr=0.7):
        self.model = model
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.outer_lr = outer_lr

    def meta_step(self, task, fraction):
        """Move the initialisation a small way towards the weights adapted to this task."""
        rate = self.outer_lr * (1.0 - fraction)
        start = self.model.state_dict()
        x, y = task.sample(20)
        loss = adapt(self.model, x, y, self.inner_steps, self.inner_lr)
        adapted = self.model.state_dict()
        merged = {name: start[name] + rate * (adapted[name] - start[name]) for name in start}
        self.model.load_state_dict(merged)
        return loss


def evaluate(model, tasks, shots=10, steps=16, lr=0.05):
    """Mean query error before and after adapting a copy to each held-out task."""
    before, after = [], []
    for task in tasks:
        x, y = task.sample(shots)
        qx, qy = task.sample(60)
        learner = copy.deepcopy(model)
        with torch.no_grad():
            before.append(F.mse_loss(learner(qx), qy).item())
        adapt(learner, x, y, steps, lr)
        with torch.no_grad():
            after.append(F.mse_loss(learner(qx), qy).item())
    return sum(before) / len(before), sum(after) / len(after)


def main(iterations=260):
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(17)
    held_out = [SineTask(torch.Generator().manual_seed(1000 + k)) for k in range(12)]
    model = Regressor()
    learner = Reptile(model)
    average = None
    for it in range(iterations):
        loss = learner.meta_step(SineTask(generator), it / iterations)
        average = loss if average is None else 0.95 * average + 0.05 * loss
        if it % 65 == 64:
            print(f"iteration {it + 1:4d}  inner loss {average:.4f}")
    before, after = evaluate(model, held_out)
    print(f"held-out tasks: error before {before:.4f}, after adaptation {after:.4f}")
    return model, before, after


if __name__ == "__main__":
    net, error_before, error_after = main()
