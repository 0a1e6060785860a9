"""First-order MAML (Finn et al., 2017) for sine-shaped sonar echoes: adapt a network to a new echo from ten pings."""
import argparse
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F


def build():
    return nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))


class EchoTask:
    def __init__(self, g):
        self.amplitude = 0.5 + 2.5 * torch.rand((), generator=g)
        self.phase = math.pi * torch.rand((), generator=g)
        self.g = g

    def draw(self, n):
        x = 10 * torch.rand(n, 1, generator=self.g) - 5
        return x, self.amplitude * torch.sin(x + self.phase)


def adapt(model, x, y, steps, lr):
    """A copy of the model after a few gradient steps on the support set; the model itself is left alone."""
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        loss = F.mse_loss(learner(x), y)
        inner.zero_grad()
        loss.backward()
        inner.step()
    return learner


def meta_step(model, optimizer, tasks, args):
    optimizer.zero_grad()
    total = 0.0
    for task in tasks:
        learner = adapt(model, *task.draw(args.shots), args.inner_steps, args.inner_lr)
        x, y = task.draw(args.shots)
        query_loss = F.mse_loss(learner(x), y)
        grads = torch.autograd.grad(query_loss, list(learner.parameters()))
        for p, g in zip(model.parameters(), grads):
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            p.grad.add_(g, alpha=1 / len(tasks))
        total += query_loss.item() / len(tasks)
    optimizer.step()
    return total


def evaluate(model, args, tasks=60):
    g = torch.Generator().manual_seed(12345)
    before = after = 0.0
    for _ in range(tasks):
        task = EchoTask(g)
        support, query = task.draw(args.shots), task.draw(100)
        learner = adapt(model, *support, args.test_steps, args.inner_lr)
        with torch.no_grad():
            before += F.mse_loss(model(query[0]), query[1]).item() / tasks
            after += F.mse_loss(learner(query[0]), query[1]).item() / tasks
    return before, after


def main(args):
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed + 1)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.meta_lr)
    untrained = evaluate(model, args)
    print(f"untrained     before {untrained[0]:.3f}  after adaptation {untrained[1]:.3f}")
    average = None
    for it in range(args.iterations):
        loss = meta_step(model, optimizer, [EchoTask(g) for _ in range(args.meta_batch)], args)
        average = loss if average is None else 0.95 * average + 0.05 * loss
        if (it + 1) % 100 == 0:
            print(f"iteration {it + 1:4d}  query loss {average:.3f}")
    trained = evaluate(model, args)
    print(f"meta-trained  before {trained[0]:.3f}  after adaptation {trained[1]:.3f}")
    return model, untrained, trained


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--meta-batch", type=int, default=4)
    parser.add_argument("--shots", type=int, default=10)
    parser.add_argument("--inner-steps", type=int, default=2)
    parser.add_argument("--test-steps", type=int, default=5)
    parser.add_argument("--inner-lr", type=float, default=0.02)
    parser.add_argument("--meta-lr", type=float, default=3e-3)
    arguments = parser.parse_args([])
    model, untrained, trained = main(arguments)
