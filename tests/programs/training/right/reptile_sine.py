"""Reptile meta learning on sine regression."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

META_LR, INNER_LR, INNER_STEPS = 0.3, 0.02, 8


def make_net():
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def sine_task(gen):
    amp = 0.5 + 1.5 * torch.rand(1, generator=gen)
    phase = 0.5 * math.pi * torch.rand(1, generator=gen)

    def draw(n):
        x = 6 * torch.rand(n, 1, generator=gen) - 3
        return x, amp * torch.sin(x + phase)

    return draw


def adapt(meta, draw, steps):
    learner = copy.deepcopy(meta)
    opt = torch.optim.SGD(learner.parameters(), lr=INNER_LR)
    for _ in range(steps):
        x, y = draw(16)
        loss = F.mse_loss(learner(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return learner


def interpolate(meta, learner, rate):
    old, new = meta.state_dict(), learner.state_dict()
    meta.load_state_dict({k: old[k] + rate * (new[k] - old[k]) for k in old})


def evaluate(meta, gen, tasks=10):
    total = 0.0
    for _ in range(tasks):
        draw = sine_task(gen)
        learner = adapt(meta, draw, INNER_STEPS)
        x, y = draw(50)
        with torch.no_grad():
            total += F.mse_loss(learner(x), y).item()
    return total / tasks


def main():
    torch.manual_seed(6)
    gen = torch.Generator().manual_seed(7)
    meta = make_net()
    print(f"before: {evaluate(meta, gen):.4f}")
    for it in range(80):
        learner = adapt(meta, sine_task(gen), INNER_STEPS)
        interpolate(meta, learner, META_LR * (1 - it / 80))
    print(f"after: {evaluate(meta, gen):.4f}")


if __name__ == "__main__":
    main()
