import numpy as np
import torch
from torch import nn


class Orbit(nn.Module):
    def __init__(self, width=32, waves=4):
        super().__init__()
        self.waves = waves
        self.one = nn.Linear(2 * waves + 1, width)
        self.two = nn.Linear(width, 2)

    def forward(self, t):
        k = torch.arange(1, self.waves + 1) * t
        return self.two(torch.tanh(self.one(torch.cat([t, k.sin(), k.cos()], 1))))


def make_ramp(high, low, length):
    marks = [0, 0.1 * length, length]
    rates = [low, high, low]
    return lambda step: float(np.interp(step, marks, rates))


class March:
    def __init__(self, net, windows, per_window):
        self.net, self.windows, self.per_window = net, windows, per_window
        self.optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        self.rate = make_ramp(0.01, 0.0002, windows * per_window)
        self.done = 0

    def tick(self, loss):
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(self.done)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.done += 1

    def run(self, path):
        for w in range(self.windows):
            for _ in range(self.per_window):
                t = (w + 1) * torch.rand(64, 1)
                loss = (self.net(t) - path(t)).square().mean()
                self.tick(loss)
            print(f"window {w}: error {loss.item():.5f}")


def ellipse(t):
    return torch.cat([1.5 * torch.cos(1.7 * t), 0.8 * torch.sin(1.7 * t) + 0.2 * t], 1)


def main():
    torch.manual_seed(71)
    net = Orbit()
    March(net, windows=4, per_window=120).run(ellipse)
    with torch.no_grad():
        t = torch.linspace(0, 4, 200)[:, None]
        print(f"whole path: {(net(t) - ellipse(t)).square().mean().item():.5f}")


if __name__ == "__main__":
    main()
