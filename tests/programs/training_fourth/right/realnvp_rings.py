"""Affine-coupling flow on two rings. ActNorm fills its parameters in place from a first batch before training,
and the channel rotations between the couplings are fixed buffers."""
import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def rings(n):
    radius = torch.where(torch.rand(n) < 0.5, 1.0, 2.2) + 0.1 * torch.randn(n)
    angle = 2 * math.pi * torch.rand(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if not self.ready:
            with torch.no_grad():
                self.shift.copy_(-x.mean(0))
                self.log_scale.copy_(-x.std(0).log())
                self.ready.fill_(True)
        return (x + self.shift) * self.log_scale.exp(), self.log_scale.sum()


class Rotation(nn.Module):
    """A random rotation that is drawn once and never trained; its log-determinant is zero."""

    def __init__(self):
        super().__init__()
        angle = math.pi * torch.rand(())
        matrix = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
        self.register_buffer("matrix", matrix)

    def forward(self, x):
        return x @ self.matrix, 0.0


class Coupling(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        log_s, t = self.net(a).chunk(2, 1)
        log_s = torch.tanh(log_s)
        return torch.cat([b * log_s.exp() + t, a], 1), log_s.squeeze(1)


layers = nn.ModuleList()
for _ in range(4):
    layers.extend([ActNorm(2), Rotation(), Coupling()])


def nll(x):
    logdet = torch.zeros(len(x))
    for layer in layers:
        x, d = layer(x)
        logdet = logdet + d
    return (0.5 * x.pow(2).sum(1) + math.log(2 * math.pi) - logdet).mean()


with torch.no_grad():
    start = nll(rings(1024)).item()
optimizer = torch.optim.Adam(layers.parameters(), lr=4e-3)
for step in range(400):
    loss = nll(rings(128))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(layers.parameters(), 5.0)
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}  nll {loss.item():.3f}")
with torch.no_grad():
    final = nll(rings(4000)).item()
print(f"nll {start:.3f} before, {final:.3f} after")
