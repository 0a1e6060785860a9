import copy
import math

import torch
import torch.nn.functional as F
from torch import nn, optim


class SineTasks:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def _uniform(self, low, high):
        return low + (high - low) * torch.rand(1, generator=self.generator)

    def sample(self, shots):
        amplitude, phase = self._uniform(0.5, 3.0), self._uniform(0.0, math.pi)
        x = 10 * torch.rand(2 * shots, 1, generator=self.generator) - 5
        y = amplitude * torch.sin(x + phase)
        return (x[:shots], y[:shots]), (x[shots:], y[shots:])


def make_net(width=32):
    return nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))


def adapt(net, support, steps, lr):
    learner = copy.deepcopy(net)
    inner = optim.SGD(learner.parameters(), lr=lr)
    x, y = support
    for _ in range(steps):
        inner.zero_grad()
        F.mse_loss(learner(x), y).backward()
        inner.step()
    inner.zero_grad()
    return learner


def evaluate(net, tasks, count=8, shots=10):
    errors = []
    for _ in range(count):
        support, (x, y) = tasks.sample(shots)
        learner = adapt(net, support, steps=3, lr=0.02)
        with torch.no_grad():
            errors.append(F.mse_loss(learner(x), y).item())
    return sum(errors) / len(errors)


def main():
    torch.manual_seed(0)
    net = make_net()
    tasks = SineTasks(1)
    outer = optim.Adam(net.parameters(), lr=2e-3)
    for iteration in range(20):
        outer.zero_grad()
        meta_loss = 0.0
        for _ in range(4):
            support, (x, y) = tasks.sample(shots=10)
            learner = adapt(net, support, steps=2, lr=0.02)
            query_loss = F.mse_loss(learner(x), y) / 4
            query_loss.backward()
            meta_loss += query_loss.item()
        outer.step()
        if iteration % 5 == 4:
            print(f"iteration {iteration + 1} meta loss {meta_loss:.4f}")
    print(f"after adaptation {evaluate(net, SineTasks(99)):.4f}")
    return net


if __name__ == "__main__":
    net = main()
