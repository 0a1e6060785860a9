"""Reptile meta-learning on sinusoid regression tasks."""
import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SineTask:
    def __init__(self):
        self.amplitude = 0.5 + 2.5 * torch.rand(1)
        self.phase = math.pi * torch.rand(1)

    def sample(self, n):
        x = 10 * torch.rand(n, 1) - 5
        return x, self.amplitude * torch.sin(x + self.phase)


class SineNet(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, hidden), nn.Tanh(),
            nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(x)


def adapt(model, x, y, lr, steps):
    learner = copy.deepcopy(model)
    learner.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        loss = F.mse_loss(learner(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return learner, losses


@torch.no_grad()
def meta_update(model, learners, epsilon):
    for p, *fast in zip(model.parameters(), *[m.parameters() for m in learners]):
        direction = torch.stack([f - p for f in fast]).mean(0)
        p.add_(direction, alpha=epsilon)


def evaluate(model, args, tasks=10):
    scores = []
    for _ in range(tasks):
        task = SineTask()
        x, y = task.sample(10)
        x_query, y_query = task.sample(50)
        learner, _ = adapt(model, x, y, args.inner_lr, args.inner_steps)
        with torch.no_grad():
            scores.append(F.mse_loss(learner(x_query), y_query).item())
    return sum(scores) / len(scores)


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--meta-batch", type=int, default=3)
    parser.add_argument("--inner-steps", type=int, default=6)
    parser.add_argument("--inner-lr", type=float, default=0.02)
    parser.add_argument("--epsilon", type=float, default=0.5)
    return parser.parse_args()


def main():
    args = get_args()
    torch.manual_seed(0)
    model = SineNet()
    for it in range(args.iterations):
        step_size = args.epsilon * (1 - it / args.iterations)
        learners, first, last = [], 0.0, 0.0
        for _ in range(args.meta_batch):
            x, y = SineTask().sample(20)
            learner, losses = adapt(model, x, y, args.inner_lr, args.inner_steps)
            learners.append(learner)
            first += losses[0] / args.meta_batch
            last += losses[-1] / args.meta_batch
        meta_update(model, learners, step_size)
        if it % 50 == 0:
            print(f"it {it} inner loss {first:.3f} -> {last:.3f}")
    print(f"query loss after adaptation {evaluate(model, args):.3f}")
    return model


if __name__ == "__main__":
    model = main()
