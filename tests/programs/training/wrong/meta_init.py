"""Meta learning an initialisation for sine regression."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

INNER_LR = 0.05
TASKS_PER_STEP = 4


def build():
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


class SineTask:
    def __init__(self, gen):
        self.amp = 0.5 + 2 * torch.rand(1, generator=gen)
        self.phase = math.pi * torch.rand(1, generator=gen)
        self.gen = gen

    def batch(self, n):
        x = 6 * torch.rand(n, 1, generator=self.gen) - 3
        return x, self.amp * torch.sin(x + self.phase)


def adapt(meta, learner, task):
    x, y = task.batch(10)
    weights = dict(meta.named_parameters())
    for _ in range(2):
        loss = F.mse_loss(functional_call(meta, weights, (x,)), y)
        grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        weights = {k: w - INNER_LR * g for (k, w), g in zip(weights.items(), grads)}
    learner.load_state_dict(weights)
    return learner


def meta_train(steps=40):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    meta = build()
    learner = build()
    optimizer = torch.optim.Adam(meta.parameters(), lr=1e-2)
    for step in range(steps):
        optimizer.zero_grad()
        outer = 0.0
        for _ in range(TASKS_PER_STEP):
            task = SineTask(gen)
            adapted = adapt(meta, learner, task)
            xq, yq = task.batch(20)
            query_loss = F.mse_loss(adapted(xq), yq) / TASKS_PER_STEP
            query_loss.backward()
            outer += query_loss.item()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: query loss {outer:.4f}")
    return meta


if __name__ == "__main__":
    meta_train()
