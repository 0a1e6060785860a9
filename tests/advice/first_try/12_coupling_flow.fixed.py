import math

import torch
import torch.nn as nn


class AffineCoupling(nn.Module):
    def __init__(self, dim, flip, hidden=32):
        super().__init__()
        half = dim // 2
        self.keep = slice(half, None) if flip else slice(0, half)
        self.move = slice(0, half) if flip else slice(half, None)
        self.net = nn.Sequential(nn.Linear(half, hidden), nn.Tanh(), nn.Linear(hidden, 2 * half))

    def forward(self, x):
        held, moved = x[:, self.keep], x[:, self.move]
        s, t = self.net(held).chunk(2, dim=1)
        s = torch.tanh(s)
        y = x.clone()
        y[:, self.move] = moved * s.exp() + t
        return y, s.sum(dim=1)

    @torch.no_grad()
    def inverse(self, y):
        held, moved = y[:, self.keep], y[:, self.move]
        s, t = self.net(held).chunk(2, dim=1)
        x = y.clone()
        x[:, self.move] = (moved - t) * torch.tanh(s).neg().exp()
        return x


class Flow(nn.Module):
    def __init__(self, dim=2, layers=4):
        super().__init__()
        self.dim = dim
        self.layers = nn.ModuleList(AffineCoupling(dim, flip=bool(i % 2)) for i in range(layers))

    def log_prob(self, x):
        logdet = x.new_zeros(x.shape[0])
        for layer in self.layers:
            x, ld = layer(x)
            logdet = logdet + ld
        base = -0.5 * (x.pow(2).sum(1) + self.dim * math.log(2 * math.pi))
        return base + logdet

    def sample(self, n):
        x = torch.randn(n, self.dim)
        for layer in reversed(self.layers):
            x = layer.inverse(x)
        return x


def moons(n):
    t = torch.rand(n) * math.pi
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    return torch.stack([x, y], dim=1) + 0.05 * torch.randn(n, 2)


def main():
    torch.manual_seed(12)
    flow = Flow()
    opt = torch.optim.Adam(flow.parameters(), lr=5e-3)
    data = moons(512)
    for epoch in range(6):
        total = 0.0
        for idx in torch.randperm(512).split(128):
            nll = -flow.log_prob(data[idx]).mean()
            opt.zero_grad()
            nll.backward()
            opt.step()
            total += nll.item()
        print(f"epoch {epoch} nll {total / 4:.4f}")
    print("sample mean", flow.sample(256).mean(0).tolist())


if __name__ == "__main__":
    main()
