import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


def ring(n):
    angle = 2 * math.pi * torch.rand(n)
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


class Duel:
    def __init__(self, noise=4):
        self.noise = noise
        self.nets = nn.ModuleDict({"maker": mlp(noise, 32, 2), "judge": mlp(2, 32, 1)})
        self.maker_opt = torch.optim.RMSprop(self.nets["maker"].parameters(), lr=2e-3)
        self.judge_opt = torch.optim.RMSprop(self.nets["judge"].parameters(), lr=2e-3)

    def sample(self, n):
        return self.nets["maker"](torch.randn(n, self.noise))

    def judge_turn(self, n=64):
        real = self.nets["judge"](ring(n))
        fake = self.nets["judge"](self.sample(n).detach())
        loss = F.softplus(-real).mean() + F.softplus(fake).mean()
        self.judge_opt.zero_grad()
        loss.backward()
        self.judge_opt.step()
        return loss.item()

    def maker_turn(self, n=64):
        loss = F.softplus(-self.nets["judge"](self.sample(n))).mean()
        self.maker_opt.zero_grad()
        loss.backward()
        self.maker_opt.step()
        return loss.item()


duel = Duel()
for turn in range(1, 301):
    d, g = duel.judge_turn(), duel.maker_turn()
    if turn % 100 == 0:
        print(f"turn {turn}: judge {d:.3f} maker {g:.3f}")
with torch.no_grad():
    radius = duel.sample(500).norm(dim=1)
print(f"radius mean {radius.mean():.3f} std {radius.std():.3f}")
