"""Small Glow-like flow for anomaly scores of ice sensor readings: train, write a checkpoint, score with it."""
import io
import math

import torch
from torch import nn

DIM = 6


class ActNorm(nn.Module):
    """Affine layer whose first batch sets it to zero mean and unit variance."""

    def __init__(self, dim):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.initialized = False

    @torch.no_grad()
    def initialize(self, x):
        self.shift.copy_(-x.mean(0))
        self.log_scale.copy_(-torch.log(x.std(0) + 1e-6))
        self.initialized = True

    def forward(self, x):
        if not self.initialized:
            self.initialize(x)
        return (x + self.shift) * self.log_scale.exp(), self.log_scale.sum().expand(x.size(0))


class Coupling(nn.Module):
    def __init__(self, dim, flip, hidden=32):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(dim // 2, hidden), nn.Tanh(), nn.Linear(hidden, dim))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        shift, raw = self.net(a).chunk(2, dim=1)
        log_scale = torch.tanh(raw)
        b = (b + shift) * log_scale.exp()
        y = torch.cat([b, a] if self.flip else [a, b], dim=1)
        return y, log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, dim=DIM, depth=4):
        super().__init__()
        self.layers = nn.ModuleList()
        for i in range(depth):
            self.layers.append(ActNorm(dim))
            self.layers.append(Coupling(dim, flip=bool(i % 2)))

    def log_prob(self, x):
        total = torch.zeros(x.size(0))
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return total - 0.5 * (x ** 2).sum(1) - 0.5 * x.size(1) * math.log(2 * math.pi)


def readings(n, generator):
    base = torch.randn(n, DIM // 2, generator=generator)
    other = torch.sin(2 * base) + 0.2 * torch.randn(n, DIM // 2, generator=generator)
    return torch.cat([2.0 * base - 4.0, 3.0 + other], dim=1)


def train(flow, data, epochs=12, batch=128):
    optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
    for epoch in range(epochs):
        losses = []
        for idx in torch.randperm(len(data)).split(batch):
            loss = -flow.log_prob(data[idx]).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch:2d}  nll {sum(losses) / len(losses):.3f}")


def score(checkpoint, batch):
    flow = Flow()
    flow.load_state_dict(torch.load(checkpoint))
    flow.eval()
    with torch.no_grad():
        return flow.log_prob(batch)


if __name__ == "__main__":
    torch.manual_seed(5)
    g = torch.Generator().manual_seed(6)
    flow = Flow()
    train(flow, readings(4000, g))

    checkpoint = io.BytesIO()
    torch.save(flow.state_dict(), checkpoint)
    checkpoint.seek(0)

    # A night with a drifting instrument: three readings in ten carry an offset.
    night = readings(300, g)
    night[:90, DIM // 2:] += 1.5
    log_prob = score(checkpoint, night)
    auc = (log_prob[:90, None] < log_prob[None, 90:]).float().mean().item()
    print(f"night: nll of normal readings {-log_prob[90:].mean():.3f}, detection AUC {auc:.3f}")
