"""Reptile (Nichol et al. 2018) on sinusoid regression, with Adam as the outer optimizer."""
import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SineTask:
    """y = A sin(x + phase) on [-5, 5]."""

    def __init__(self, generator):
        self.g = generator
        self.amp = 0.1 + 4.9 * torch.rand(1, generator=generator)
        self.phase = math.pi * torch.rand(1, generator=generator)

    def sample(self, n):
        x = 10 * torch.rand(n, 1, generator=self.g) - 5
        return x, self.amp * torch.sin(x + self.phase)


def make_net(width=48):
    return nn.Sequential(
        nn.Linear(1, width), nn.Tanh(),
        nn.Linear(width, width), nn.Tanh(),
        nn.Linear(width, 1),
    )


def adapt(net, task_x, task_y, steps, lr, batch=None):
    """Plain SGD on a copy of `net`; returns the adapted copy."""
    learner = copy.deepcopy(net)
    opt = torch.optim.SGD(learner.parameters(), lr=lr)
    n = len(task_x)
    for i in range(steps):
        if batch is None:
            xb, yb = task_x, task_y
        else:
            lo = (i * batch) % n
            xb, yb = task_x[lo:lo + batch], task_y[lo:lo + batch]
        loss = F.mse_loss(learner(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return learner


def reptile_step(net, meta_opt, tasks, inner_steps, inner_lr):
    meta_opt.zero_grad()
    for task in tasks:
        x, y = task.sample(40)
        learner = adapt(net, x, y, inner_steps, inner_lr, batch=10)
        with torch.no_grad():
            for p, q in zip(net.parameters(), learner.parameters()):
                delta = (p - q) / len(tasks)
                p.grad = delta if p.grad is None else p.grad + delta
    meta_opt.step()


def evaluate(net, seed, n_tasks=20, shots=10, steps=16, lr=0.02):
    g = torch.Generator().manual_seed(seed)
    before = after = 0.0
    for _ in range(n_tasks):
        task = SineTask(g)
        xs, ys = task.sample(shots)
        xq, yq = task.sample(100)
        learner = adapt(net, xs, ys, steps, lr)
        with torch.no_grad():
            before += F.mse_loss(net(xq), yq).item() / n_tasks
            after += F.mse_loss(learner(xq), yq).item() / n_tasks
    return before, after


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=120)
    ap.add_argument("--meta-batch", type=int, default=3)
    ap.add_argument("--inner-steps", type=int, default=8)
    ap.add_argument("--inner-lr", type=float, default=0.02)
    ap.add_argument("--meta-lr", type=float, default=3e-3)
    args, _ = ap.parse_known_args()

    torch.manual_seed(0)
    g = torch.Generator().manual_seed(7)
    net = make_net()
    meta_opt = torch.optim.Adam(net.parameters(), lr=args.meta_lr, betas=(0.0, 0.999))
    sched = torch.optim.lr_scheduler.LinearLR(meta_opt, 1.0, 0.1, total_iters=args.iterations)
    start = evaluate(net, seed=100)
    for it in range(args.iterations):
        tasks = [SineTask(g) for _ in range(args.meta_batch)]
        reptile_step(net, meta_opt, tasks, args.inner_steps, args.inner_lr)
        sched.step()
        if it % 40 == 39:
            before, after = evaluate(net, seed=100, n_tasks=10)
            print(f"iteration {it + 1:4d}  query mse before {before:.3f}  after adaptation {after:.3f}")
    end = evaluate(net, seed=100)
    print(f"after adaptation: untrained init {start[1]:.3f}, meta-trained init {end[1]:.3f}")


if __name__ == "__main__":
    main()
