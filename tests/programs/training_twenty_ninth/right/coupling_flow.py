"""A Glow style flow (actnorm, flips, affine couplings) for two moons, stored and loaded again."""
import io
import math

import torch
from torch import nn


def moons(count, spread=0.1):
    angle = math.pi * torch.rand(count)
    upper = torch.rand(count) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], dim=1) + spread * torch.randn(count, 2)


class ActNorm(nn.Module):
    """Scale and shift for each coordinate; the first training batch sets their start."""

    def __init__(self, dim):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.register_buffer("started", torch.tensor(False))

    def start(self, x):
        std, mean = torch.std_mean(x.detach(), dim=0)
        self.log_scale.data.copy_(-torch.log(std + 1e-6))
        self.shift.data.copy_(-mean)
        self.started.fill_(True)

    def forward(self, x):
        if self.training and not self.started:
            self.start(x)
        return (x + self.shift) * self.log_scale.exp(), self.log_scale.sum().expand(len(x))

    def inverse(self, z):
        return z * torch.exp(-self.log_scale) - self.shift


class Coupling(nn.Module):
    """Affine coupling that is the identity at the start (its last layer is zero)."""

    def __init__(self, dim, width):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(
            nn.Linear(self.half, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 2 * (dim - self.half)),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def affine(self, kept):
        raw, shift = self.net(kept).chunk(2, dim=1)
        return 2.0 * torch.tanh(raw / 2.0), shift

    def forward(self, x):
        kept, moved = x[:, : self.half], x[:, self.half :]
        log_scale, shift = self.affine(kept)
        moved = moved * log_scale.exp() + shift
        return torch.cat([moved, kept], dim=1), log_scale.sum(dim=1)

    def inverse(self, z):
        moved, kept = z[:, : -self.half], z[:, -self.half :]
        log_scale, shift = self.affine(kept)
        return torch.cat([kept, (moved - shift) * torch.exp(-log_scale)], dim=1)


class Flow(nn.Module):
    def __init__(self, dim=2, depth=4, width=32):
        super().__init__()
        self.dim = dim
        self.steps = nn.ModuleList()
        for _ in range(depth):
            self.steps.extend([ActNorm(dim), Coupling(dim, width)])

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for step in self.steps:
            x, log_det = step(x)
            total = total + log_det
        return total - 0.5 * (x.pow(2) + math.log(2 * math.pi)).sum(dim=1)

    @torch.no_grad()
    def sample(self, count):
        z = torch.randn(count, self.dim)
        for step in reversed(self.steps):
            z = step.inverse(z)
        return z


@torch.no_grad()
def held_out(flow, x):
    flow.eval()
    nll = -flow.log_prob(x).mean().item()
    flow.train()
    return nll


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    train, test = moons(2000), moons(500)
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=8e-3)
    for step in range(121):
        x = train[torch.randint(0, len(train), (128,))]
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:3d}  nll {loss.item():.3f}  held out {held_out(flow, test):.3f}")
    store = io.BytesIO()
    torch.save(flow.state_dict(), store)
    store.seek(0)
    again = Flow()
    again.load_state_dict(torch.load(store))
    print(f"held out {held_out(flow, test):.4f}  loaded {held_out(again, test):.4f}")
    drawn = flow.sample(1000)
    print(f"mean of data {train.mean(dim=0).tolist()}  of samples {drawn.mean(dim=0).tolist()}")
    return flow, again, test


if __name__ == "__main__":
    flow, again, test = main()
