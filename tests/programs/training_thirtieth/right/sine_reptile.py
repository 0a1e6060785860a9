"""Few-shot sine regression: an initialisation learned by moving it towards the weights that each task ends at."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SineTask:
    def __init__(self, generator):
        draw = torch.rand(2, generator=generator)
        self.amplitude = 0.5 + 2.0 * draw[0].item()
        self.phase = math.pi * draw[1].item()
        self.generator = generator

    def sample(self, n):
        x = 6 * torch.rand(n, 1, generator=self.generator) - 3
        return x, self.amplitude * torch.sin(x + self.phase)


def make_net(width=48):
    return nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))


def adapt(model, x, y, steps, lr=0.1):
    learner = copy.deepcopy(model)
    optimizer = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(learner(x), y).backward()
        optimizer.step()
    return learner


class Reptile:
    def __init__(self, model, meta_lr=0.5, inner_steps=5):
        self.model, self.inner_steps = model, inner_steps
        self.optimizer = torch.optim.SGD(model.parameters(), lr=meta_lr)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.1, total_iters=50)

    def meta_step(self, tasks):
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)
        for task in tasks:
            x, y = task.sample(20)
            learner = adapt(self.model, x, y, self.inner_steps)
            for p, q in zip(self.model.parameters(), learner.parameters()):
                p.grad.add_(p.data - q.data, alpha=1 / len(tasks))
        self.optimizer.step()
        self.scheduler.step()


def evaluate(model, tasks, shots=10, steps=12):
    before, after = 0.0, 0.0
    for task in tasks:
        x, y = task.sample(shots)
        x_test, y_test = task.sample(100)
        learner = adapt(model, x, y, steps)
        with torch.no_grad():
            before += F.mse_loss(model(x_test), y_test).item() / len(tasks)
            after += F.mse_loss(learner(x_test), y_test).item() / len(tasks)
    return before, after


def main():
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(40)
    held_out = [SineTask(generator) for _ in range(8)]
    model = make_net()
    reptile = Reptile(model)
    before, after = evaluate(model, held_out)
    print(f"meta step    0  before adaptation {before:.3f}  after {after:.3f}")
    for step in range(1, 51):
        reptile.meta_step([SineTask(generator) for _ in range(2)])
        if step % 25 == 0:
            before, after = evaluate(model, held_out)
            print(f"meta step {step:4d}  before adaptation {before:.3f}  after {after:.3f}")
    return model, after


if __name__ == "__main__":
    main()
