import math

import torch
from torch import nn
from torch.func import functional_call
import torch.nn.functional as F

SHOTS, QUERY, TASKS, INNER_LR = 10, 20, 8, 0.5


class SineTasks:
    """Regression tasks y = a sin(x + phase) + c with a few labelled points for the adaptation."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def uniform(self, low, high, *shape):
        return low + (high - low) * torch.rand(*shape, generator=self.generator)

    def sample(self):
        amplitude, phase = self.uniform(0.5, 3.0, 1), self.uniform(0.0, math.pi, 1)
        offset = self.uniform(0.0, 2.0, 1)
        x = self.uniform(-4.0, 4.0, SHOTS + QUERY, 1)
        y = amplitude * torch.sin(x + phase) + offset
        return (x[:SHOTS], y[:SHOTS]), (x[SHOTS:], y[SHOTS:])


class Body(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, width), nn.LayerNorm(width),
        )

    def forward(self, x):
        return self.layers(x)


class Regressor(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.body = Body(width)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        features = self.body(x)
        return self.head(features / math.sqrt(features.shape[-1]))


def adapt(model, support, create_graph):
    """One gradient step on the head only; the body is reused by all tasks."""
    x, y = support
    fast = dict(model.head.named_parameters())
    loss = F.mse_loss(functional_call(model, fast, (x,)), y)
    grads = torch.autograd.grad(loss, tuple(fast.values()), create_graph=create_graph)
    return {name: p - INNER_LR * g for (name, p), g in zip(fast.items(), grads)}, loss.detach()


def meta_step(model, optimizer, tasks):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(TASKS):
        support, (x, y) = tasks.sample()
        fast, _ = adapt(model, support, create_graph=True)
        query_loss = F.mse_loss(functional_call(model, fast, (x,)), y)
        (query_loss / TASKS).backward()
        total += query_loss.item() / TASKS
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    return total


def evaluate(model, tasks, count=100):
    losses = []
    for _ in range(count):
        support, (x, y) = tasks.sample()
        fast, _ = adapt(model, support, create_graph=False)
        with torch.no_grad():
            losses.append(F.mse_loss(functional_call(model, fast, (x,)), y))
    return torch.stack(losses).mean().item()


torch.manual_seed(0)
model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
train_tasks = SineTasks(seed=1)
smoothed = None
for step in range(200):
    loss = meta_step(model, optimizer, train_tasks)
    smoothed = loss if smoothed is None else 0.95 * smoothed + 0.05 * loss
    if step % 100 == 0:
        print(f"step {step}: query loss {smoothed:.3f}")
test_loss = evaluate(model, SineTasks(seed=2))
print(f"held-out tasks, after adaptation: {test_loss:.3f}")
