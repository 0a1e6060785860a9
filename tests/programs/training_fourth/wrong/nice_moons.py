"""Additive-coupling flow (NICE) with ActNorm layers on a bent, stretched two-dimensional density."""
import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def sample_data(n):
    a = torch.randn(n) * 1.0
    b = 0.15 * torch.randn(n) + 0.5 * a**2
    return torch.stack([1.5 * a + 0.3 * b, b], 1) + torch.tensor([2.0, -1.0])


class ActNorm(nn.Module):
    """Per-feature shift and scale; the first batch sets both so that the output has zero mean and unit variance."""

    def __init__(self, dim):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.ready = False

    def initialise(self, x):
        mean, std = x.detach().mean(0), x.detach().std(0)
        self.shift = nn.Parameter(-mean)
        self.log_scale = nn.Parameter(-torch.log(std + 1e-6))
        self.ready = True

    def forward(self, x):
        if not self.ready:
            self.initialise(x)
        return (x + self.shift) * self.log_scale.exp(), self.log_scale.sum().expand(len(x))


class AdditiveCoupling(nn.Module):
    def __init__(self, flip, hidden=32):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        a, b = x[:, :1], x[:, 1:]
        if self.flip:
            a, b = b, a
        b = b + self.net(a)
        parts = [b, a] if self.flip else [a, b]
        return torch.cat(parts, 1), torch.zeros(len(x))


class Flow(nn.Module):
    def __init__(self, blocks=4):
        super().__init__()
        layers = []
        for i in range(blocks):
            layers += [ActNorm(2), AdditiveCoupling(flip=i % 2 == 1)]
        self.layers = nn.ModuleList(layers + [ActNorm(2)])

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, logdet = layer(x)
            total = total + logdet
        return total - 0.5 * x.pow(2).sum(1) - math.log(2 * math.pi)


def main():
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=250, gamma=0.4)
    test = sample_data(4000)
    for step in range(600):
        loss = -flow.log_prob(sample_data(128)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if step % 150 == 0:
            print(f"step {step:4d}  nll {loss.item():.3f}")
    with torch.no_grad():
        nll = -flow.log_prob(test).mean().item()
    print(f"test nll {nll:.3f} nats")


if __name__ == "__main__":
    main()
