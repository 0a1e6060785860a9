"""Reptile on small regression tasks: vibration of rotors with their own amplitude and phase."""
import argparse
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


class Rotor:
    def __init__(self, gen):
        self.gen = gen
        self.amplitude = 0.2 + 1.8 * torch.rand(1, generator=gen)
        self.phase = math.pi * torch.rand(1, generator=gen)

    def draw(self, n):
        t = -4 + 8 * torch.rand(n, 1, generator=self.gen)
        return t, self.amplitude * torch.sin(t + self.phase)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.out = nn.Linear(width, 1)

    def forward(self, t):
        return self.out(self.body(t))


def inner_loop(net, t, y, steps, lr, batch=None):
    """Plain SGD on a throw-away copy."""
    fast = copy.deepcopy(net)
    opt = torch.optim.SGD(fast.parameters(), lr=lr)
    for _ in range(steps):
        pick = torch.randperm(len(t))[:batch]
        opt.zero_grad()
        F.mse_loss(fast(t[pick]), y[pick]).backward()
        opt.step()
    return fast


def meta_step(net, outer, tasks, args):
    """The direction (initial - adapted), averaged over the tasks, plays the role of the gradient."""
    outer.zero_grad()
    for task in tasks:
        t, y = task.draw(args.shots)
        fast = inner_loop(net, t, y, args.inner_steps, args.inner_lr, args.inner_batch)
        with torch.no_grad():
            for slow, quick in zip(net.parameters(), fast.parameters()):
                direction = (slow - quick) / len(tasks)
                slow.grad = direction if slow.grad is None else slow.grad + direction
    outer.step()


def adapted_error(net, tasks, args):
    error = 0.0
    for task in tasks:
        t, y = task.draw(10)
        fast = inner_loop(net, t, y, 16, args.inner_lr)
        with torch.no_grad():
            t, y = task.draw(100)
            error += F.mse_loss(fast(t), y).item()
    return error / len(tasks)


def main(args):
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    net = Net(args.width)
    held_out = [Rotor(gen) for _ in range(30)]
    outer = torch.optim.SGD(net.parameters(), lr=args.outer_lr)
    before = adapted_error(net, held_out, args)
    print(f"before meta-training: error after adaptation {before:.3f}")
    for it in range(args.iterations):
        outer.param_groups[0]["lr"] = args.outer_lr * (1 - it / args.iterations)
        meta_step(net, outer, [Rotor(gen) for _ in range(args.tasks)], args)
        if (it + 1) % (args.iterations // 4) == 0:
            print(f"iteration {it + 1:4d}: error after adaptation {adapted_error(net, held_out, args):.3f}")
    return net, before, adapted_error(net, held_out, args)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--shots", type=int, default=30)
    parser.add_argument("--inner-steps", type=int, default=8)
    parser.add_argument("--inner-batch", type=int, default=10)
    parser.add_argument("--inner-lr", type=float, default=0.05)
    parser.add_argument("--outer-lr", type=float, default=1.0)
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args([])
    net, before, after = main(args)
