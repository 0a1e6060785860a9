"""Small Glow-style normalising flow for tabular density estimation."""
import math

import torch
import torch.nn as nn


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.initialized = False

    def initialize(self, x):
        with torch.no_grad():
            mean, std = x.mean(0), x.std(0) + 1e-6
        self.bias = nn.Parameter(-mean)
        self.log_scale = nn.Parameter(-std.log())
        self.initialized = True

    def forward(self, x):
        if not self.initialized:
            self.initialize(x)
        z = (x + self.bias) * self.log_scale.exp()
        return z, self.log_scale.sum().expand(x.size(0))


class AffineCoupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        self.half = dim // 2
        self.flip = flip
        self.net = nn.Sequential(
            nn.Linear(self.half, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 2 * (dim - self.half)),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        if self.flip:
            x = x.flip(1)
        a, b = x[:, :self.half], x[:, self.half:]
        shift, raw = self.net(a).chunk(2, dim=1)
        log_s = torch.tanh(raw)
        return torch.cat([a, b * log_s.exp() + shift], dim=1), log_s.sum(1)


class Flow(nn.Module):
    def __init__(self, dim=4, hidden=32, blocks=4):
        super().__init__()
        steps = []
        for i in range(blocks):
            steps += [ActNorm(dim), AffineCoupling(dim, hidden, flip=i % 2 == 1)]
        self.steps = nn.ModuleList(steps)

    def log_prob(self, x):
        log_det = torch.zeros(x.size(0))
        for step in self.steps:
            x, ld = step(x)
            log_det = log_det + ld
        base = -0.5 * (x ** 2 + math.log(2 * math.pi)).sum(1)
        return base + log_det


def make_table(n):
    a = torch.randn(n, 1)
    b = a ** 2 + 0.3 * torch.randn(n, 1)
    c = torch.sin(2 * a) * 3 + 0.2 * torch.randn(n, 1) + 5
    d = torch.exp(0.5 * torch.randn(n, 1)) * 2
    return torch.cat([a, b, c, d], dim=1)


def main():
    torch.manual_seed(4)
    train, valid = make_table(2048), make_table(512)
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
    for epoch in range(12):
        total = 0.0
        for idx in torch.randperm(train.size(0)).split(128):
            loss = -flow.log_prob(train[idx]).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            optimizer.step()
            total += loss.item() * idx.numel()
        with torch.no_grad():
            nll = -flow.log_prob(valid).mean().item()
        if epoch % 3 == 2:
            print(f"epoch {epoch} train nll {total / train.size(0):.3f} valid nll {nll:.3f}")
    return flow, optimizer, nll


if __name__ == "__main__":
    flow, optimizer, nll = main()
