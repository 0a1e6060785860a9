"""Tabular regression: yield strength of synthetic alloys, trained with autocast on the CPU and a weight average.

The network trains in float32 under bfloat16 autocast.  Next to it runs an exponential moving average of the weights
that is used for the predictions; like the published checkpoints, the average is stored in bfloat16.
"""
import copy
import math

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

SEED = 31
ELEMENTS = 9
N_TRAIN, N_TEST = 2500, 800
STEPS, BATCH = 900, 64
DECAY = 0.995


def synthesize(n, rng):
    fractions = rng.dirichlet(np.full(ELEMENTS, 0.7), size=n)
    anneal = rng.uniform(0.0, 1.0, size=(n, 1))
    strength = (
        3.0 * np.sqrt(fractions[:, 0] * fractions[:, 3])
        + 2.0 * np.tanh(4 * fractions[:, 1] - 1)
        - 2.5 * fractions[:, 2] * anneal[:, 0]
        + 1.5 * np.sin(3 * anneal[:, 0]) * fractions[:, 5]
    )
    strength = strength + 0.04 * rng.standard_t(4, size=n)
    x = np.concatenate([fractions * ELEMENTS - 1.0, 2 * anneal - 1], axis=1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(strength, dtype=torch.float32)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, h):
        return h + self.down(F.gelu(self.up(self.norm(h))))


class AlloyNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Linear(ELEMENTS + 1, width)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.blocks(self.embed(x))).squeeze(-1)


class WeightAverage:
    def __init__(self, net, decay):
        self.decay = decay
        self.net = copy.deepcopy(net).to(torch.bfloat16).eval()
        self.net.requires_grad_(False)
        self.updates = 0

    @torch.no_grad()
    def update(self, net):
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 9))
        for avg, p in zip(self.net.parameters(), net.parameters()):
            avg.lerp_(p.to(avg.dtype), 1.0 - decay)


@torch.no_grad()
def rmse(net, x, y):
    dtype = next(net.parameters()).dtype
    return F.mse_loss(net(x.to(dtype)).float(), y).sqrt().item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    x, y = synthesize(N_TRAIN, rng)
    x_test, y_test = synthesize(N_TEST, rng)

    net = AlloyNet()
    average = WeightAverage(net, DECAY)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1.0, (s + 1) / 50) * 0.5 * (1.2 + math.cos(math.pi * s / STEPS))
    )
    for step in range(STEPS):
        rows = torch.randint(0, N_TRAIN, (BATCH,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            pred = net(x[rows])
        loss = F.huber_loss(pred.float(), y[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        average.update(net)
        if (step + 1) % 225 == 0:
            print(f"step {step + 1}  loss {loss.item():.4f}  averaged rmse {rmse(average.net, x_test, y_test):.4f}")

    print(f"target std {y_test.std():.3f}  held-out rmse of the average {rmse(average.net, x_test, y_test):.4f}")
    return net, average.net, x_test, y_test


if __name__ == "__main__":
    net, averaged, x_test, y_test = main()
