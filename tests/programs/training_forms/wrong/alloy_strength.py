from copy import copy
from dataclasses import dataclass, field

import torch
from torch import nn

torch.manual_seed(101)


@dataclass
class Champion:
    score: float = float("inf")
    epoch: int = -1
    net: nn.Module = None

    def offer(self, score, epoch, net):
        if score < self.score:
            self.score, self.epoch, self.net = score, epoch, copy(net)


@dataclass
class Lab:
    net: nn.Module
    rate: float = 0.1
    champion: Champion = field(default_factory=Champion)

    def __post_init__(self):
        self.opt = torch.optim.SGD(self.net.parameters(), lr=self.rate, momentum=0.9)

    def error(self, net, x, y):
        return (net(x).squeeze(1) - y).square().mean()

    def run(self, x, y, xv, yv, epochs):
        for e in range(epochs):
            for rows in torch.randperm(len(x)).split(10):
                loss = self.error(self.net, x[rows], y[rows])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            with torch.no_grad():
                score = self.error(self.net, xv, yv).item()
            self.champion.offer(score, e, self.net)
            if e % 6 == 5:
                print(f"epoch {e}: train {loss.item():.4f} validation {score:.4f}")


def alloys(n):
    mix = torch.softmax(torch.randn(n, 9), 1) * 4
    strength = mix[:, 0] * 1.5 - mix[:, 1] + mix[:, 2] * mix[:, 3]
    return mix, strength + 0.4 * torch.randn(n)


x, y = alloys(60)
xv, yv = alloys(80)
lab = Lab(nn.Sequential(nn.Linear(9, 64), nn.Tanh(), nn.Linear(64, 1)))
lab.run(x, y, xv, yv, 30)
best = lab.champion
with torch.no_grad():
    again = lab.error(best.net, xv, yv).item()
print(f"best epoch {best.epoch}: validation then {best.score:.4f}, chosen model {again:.4f}")
