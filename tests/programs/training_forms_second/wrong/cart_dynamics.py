import math

import torch
from torch import nn


class EnsembleLinear(nn.Module):
    def __init__(self, members, fan_in, fan_out):
        super().__init__()
        bound = 1 / math.sqrt(fan_in)
        w = torch.empty(fan_in, fan_out).uniform_(-bound, bound)
        self.weight = nn.Parameter(w.repeat(members, 1, 1))
        self.bias = nn.Parameter(torch.zeros(members, 1, fan_out))

    def forward(self, x):
        return torch.baddbmm(self.bias, x, self.weight)


class Dynamics(nn.Module):
    def __init__(self, members=5, state=4, action=1, width=32):
        super().__init__()
        self.members = members
        self.first = EnsembleLinear(members, state + action, width)
        self.second = EnsembleLinear(members, width, state)

    def forward(self, s, a):
        x = torch.cat([s, a], -1).expand(self.members, -1, -1)
        return s + self.second(torch.tanh(self.first(x)))

    @torch.no_grad()
    def uncertainty(self, s, a):
        return self(s, a).std(0).mean(-1)


def physics(s, a, dt=0.1):
    x, v, th, om = s.unbind(-1)
    force = 3 * a.squeeze(-1)
    acc = force + 0.3 * torch.sin(th) * om ** 2
    alpha = 9.8 * torch.sin(th) - torch.cos(th) * force
    return torch.stack([x + dt * v, v + dt * acc, th + dt * om, om + dt * alpha], -1)


def transitions(n, spread):
    s = spread * torch.randn(n, 4)
    a = 2 * torch.rand(n, 1) - 1
    return s, a, physics(s, a)


torch.manual_seed(14)
model = Dynamics()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
data = transitions(1000, 0.5)
for step in range(150):
    idx = torch.randint(0, 1000, (64,))
    s, a, nxt = (d[idx] for d in data)
    loss = (model(s, a) - nxt).pow(2).mean((1, 2)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (step + 1) % 30 == 0:
        print(f"step {step + 1} loss {loss.item():.5f}")
for spread in (0.5, 2.0):
    s, a, _ = transitions(200, spread)
    print(f"spread {spread} uncertainty {model.uncertainty(s, a).mean().item():.6f}")
