import math
from contextlib import contextmanager

import torch
from torch import nn


class ScoreNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, sigma):
        return self.net(torch.cat([x, sigma.log()[:, None]], -1)) / sigma[:, None]


class Shadow:
    def __init__(self, module, decay):
        self.params = list(module.parameters())
        self.values = [p.detach().clone() for p in self.params]
        self.decay = decay

    @torch.no_grad()
    def update(self):
        for v, p in zip(self.values, self.params):
            v.lerp_(p, 1 - self.decay)

    def exchange(self):
        for i, p in enumerate(self.params):
            self.values[i], p.data = p.data, self.values[i]

    @contextmanager
    def active(self):
        self.exchange()
        try:
            yield
        finally:
            self.exchange()


def matching_loss(net, x, g):
    sigma = torch.exp(torch.rand(len(x), generator=g) * 3 - 3)
    eps = torch.randn(x.shape, generator=g)
    score = net(x + sigma[:, None] * eps, sigma)
    return (score * sigma[:, None] + eps).pow(2).sum(-1).mean()


def train(net, data, steps=120):
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    shadow = Shadow(net, 0.95)
    g = torch.Generator().manual_seed(1)
    for step in range(1, steps + 1):
        loss = matching_loss(net, data[torch.randint(0, len(data), (128,), generator=g)], g)
        opt.zero_grad()
        loss.backward()
        opt.step()
        shadow.update()
        if step % 30 == 0:
            with shadow.active(), torch.no_grad():
                held = matching_loss(net, data, torch.Generator().manual_seed(50)).item()
            print(f"step {step} train {loss.item():.3f} shadow {held:.3f}")
    return shadow


if __name__ == "__main__":
    torch.manual_seed(0)
    angle = torch.rand(800) * 2 * math.pi
    data = torch.stack([angle.cos(), (2 * angle).sin()], -1)
    net = ScoreNet()
    shadow = train(net, data)
