import copy

import torch
from torch import nn
import torch.nn.functional as F


class TapModel(nn.Module):
    def __init__(self, inputs=6, width=24, keys=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, keys))

    def forward(self, x):
        return self.net(x)


def adapt(start, x, y, steps, lr):
    learner = copy.deepcopy(start)
    opt = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        opt.zero_grad()
        F.cross_entropy(learner(x), y).backward()
        opt.step()
    return learner


class MetaTrainer:
    def __init__(self, model, outer_lr=0.5, inner_lr=0.2, inner_steps=5):
        self.model, self.inner_lr, self.inner_steps = model, inner_lr, inner_steps
        self.opt = torch.optim.SGD(model.parameters(), lr=outer_lr, momentum=0.5)

    def outer_step(self, tasks):
        self.opt.zero_grad()
        for x, y in tasks:
            learner = adapt(self.model, x, y, self.inner_steps, self.inner_lr)
            for p, q in zip(self.model.parameters(), learner.parameters()):
                gap = (p.data - q.data) / len(tasks)
                p.grad = gap if p.grad is None else p.grad + gap
        self.opt.step()

    def evaluate(self, tasks):
        total = 0.0
        for (x, y), (xq, yq) in tasks:
            learner = adapt(self.model, x, y, self.inner_steps, self.inner_lr)
            with torch.no_grad():
                total += F.cross_entropy(learner(xq), yq).item()
        return total / len(tasks)


class Keyboards:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.layout = torch.randn(6, 4, generator=self.g)

    def draw(self, weights, n):
        x = torch.randn(n, 6, generator=self.g)
        return x, (x @ weights).argmax(-1)

    def task(self, n=24):
        return self.draw(self.layout + 0.4 * torch.randn(6, 4, generator=self.g), n)

    def split_task(self, n=24):
        weights = self.layout + 0.4 * torch.randn(6, 4, generator=self.g)
        return self.draw(weights, n), self.draw(weights, 64)


if __name__ == "__main__":
    torch.manual_seed(0)
    world = Keyboards(9)
    held = [world.split_task() for _ in range(6)]
    meta = MetaTrainer(TapModel())
    for k in range(30):
        meta.outer_step([world.task() for _ in range(4)])
        if k % 10 == 9:
            print(f"{k + 1} query loss after adaptation {meta.evaluate(held):.4f}")
