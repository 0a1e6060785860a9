"""Restore noisy vibration traces with a residual network whose layers each make a bounded correction."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(21)

LENGTH = 32
WIDTH = 48
DEPTH = 4
LIMIT = 0.4
BATCH = 64
STEPS = 120
LEARNING_RATE = 2e-3


class BoundedStep(torch.autograd.Function):
    """Clamp to [-limit, limit]; the gradient passes only for entries inside the range."""

    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x)
        ctx.limit = limit
        return x.clamp(-limit, limit)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_input = grad_output
        grad_input[x.abs() > ctx.limit] = 0
        return grad_input, None


def bounded(x, limit):
    return BoundedStep.apply(x, limit)


class CorrectionBlock(nn.Module):
    """One layer: the state plus a correction of at most `limit` per entry."""

    def __init__(self, width, limit):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)
        self.limit = limit

    def forward(self, state):
        return state + bounded(self.mix(self.norm(state)), self.limit)


class Restorer(nn.Module):
    def __init__(self, length=LENGTH, width=WIDTH, depth=DEPTH, limit=LIMIT):
        super().__init__()
        self.lift = nn.Linear(length, width)
        self.blocks = nn.ModuleList(CorrectionBlock(width, limit) for _ in range(depth))
        self.head = nn.Linear(width, length)

    def forward(self, trace):
        state = self.lift(trace)
        for block in self.blocks:
            state = block(state)
        return self.head(state)


def make_batch(count, noise=0.5, generator=None):
    """Sums of two sinusoids, clean and with noise."""
    time = torch.linspace(0, 2 * math.pi, LENGTH)
    speed = torch.randint(1, 5, (count, 2, 1), generator=generator).float()
    phase = 2 * math.pi * torch.rand(count, 2, 1, generator=generator)
    size = 0.5 + torch.rand(count, 2, 1, generator=generator)
    clean = (size * torch.sin(speed * time + phase)).sum(1)
    noisy = clean + noise * torch.randn(count, LENGTH, generator=generator)
    return noisy, clean


@torch.no_grad()
def signal_to_noise(model, noisy, clean):
    model.eval()
    error = (model(noisy) - clean).pow(2).mean()
    model.train()
    return (10 * torch.log10(clean.pow(2).mean() / error)).item()


def train(model, steps=STEPS):
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    history = []
    for step in range(steps):
        noisy, clean = make_batch(BATCH)
        loss = F.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if (step + 1) % 40 == 0:
            recent = sum(history[-20:]) / 20
            print(f"step {step + 1:4d}  loss {recent:.4f}")
    return history


if __name__ == "__main__":
    held_out = make_batch(256, generator=torch.Generator().manual_seed(5))
    restorer = Restorer()
    print(f"before: {signal_to_noise(restorer, *held_out):6.2f} dB")
    losses = train(restorer)
    print(f"after:  {signal_to_noise(restorer, *held_out):6.2f} dB")
