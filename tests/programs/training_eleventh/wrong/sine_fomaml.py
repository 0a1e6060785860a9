"""First-order MAML on sinusoid regression: adapt to a new amplitude and phase from ten points."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 11
META_STEPS = 140
TASKS_PER_STEP = 8
SHOTS = 10
INNER_STEPS = 3
INNER_LR = 0.02

torch.manual_seed(SEED)


class SineTask:
    def __init__(self, generator):
        u = torch.rand(2, generator=generator)
        self.amplitude = 0.5 + 3.5 * u[0]
        self.phase = math.pi * u[1]
        self.generator = generator

    def draw(self, n):
        x = torch.rand(n, 1, generator=self.generator) * 10 - 5
        return x, self.amplitude * torch.sin(x + self.phase)


class Regressor(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x)


def adapt(model, x, y, steps=INNER_STEPS):
    """Returns a copy of the model after a few plain gradient steps on the support set."""
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=INNER_LR)
    for _ in range(steps):
        loss = F.mse_loss(learner(x), y)
        inner.zero_grad()
        loss.backward()
        inner.step()
    return learner


def evaluate(model, n_tasks=60):
    generator = torch.Generator().manual_seed(1234)
    before, after = 0.0, 0.0
    for _ in range(n_tasks):
        task = SineTask(generator)
        xs, ys = task.draw(SHOTS)
        xq, yq = task.draw(50)
        learner = adapt(model, xs, ys)
        with torch.no_grad():
            before += F.mse_loss(model(xq), yq).item() / n_tasks
            after += F.mse_loss(learner(xq), yq).item() / n_tasks
    return before, after


def meta_step(model, optimizer, generator):
    """One outer update from the query losses of a batch of tasks."""
    optimizer.zero_grad()
    query_loss = 0.0
    for _ in range(TASKS_PER_STEP):
        task = SineTask(generator)
        xs, ys = task.draw(SHOTS)
        xq, yq = task.draw(SHOTS)
        learner = adapt(model, xs, ys)
        loss = F.mse_loss(learner(xq), yq)
        grads = torch.autograd.grad(loss, list(learner.parameters()))
        for p, g in zip(model.parameters(), grads):
            p.grad = g / TASKS_PER_STEP
        query_loss += loss.item() / TASKS_PER_STEP
    optimizer.step()
    return query_loss


model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
task_generator = torch.Generator().manual_seed(SEED)

before, after = evaluate(model)
print(f"start: zero-shot {before:.3f} adapted {after:.3f}")
recent = []
for step in range(META_STEPS):
    recent.append(meta_step(model, optimizer, task_generator))
    if (step + 1) % 35 == 0:
        print(f"meta step {step + 1}: query loss {sum(recent) / len(recent):.3f}")
        recent.clear()
before, after = evaluate(model)
print(f"end: zero-shot {before:.3f} adapted {after:.3f}")
