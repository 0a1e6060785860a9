import math
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(30)


class WaveHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(1, 12, 5, stride=2), nn.ReLU(), nn.Conv1d(12, 12, 5, stride=2), nn.ReLU())
        self.top = nn.Linear(12, 4)

    def forward(self, x):
        return self.top(self.stem(x).mean(-1))


class Pace:
    def __init__(self, opt, total, warm=8):
        self.opt, self.total, self.warm = opt, total, warm
        self.peak = max(g["lr"] for g in opt.param_groups)

    def factor(self, t):
        if t < self.warm:
            return (t + 1) / self.warm
        return 0.5 * (1 + math.cos(math.pi * (t - self.warm) / (self.total - self.warm)))

    def on_step(self, t):
        for g in self.opt.param_groups:
            g["lr"] = self.peak * self.factor(t)


def waves(n):
    kind = torch.randint(4, (n,))
    t = torch.linspace(0, 6.28, 64)
    x = torch.sin(t * (kind.unsqueeze(1) * 2 + 1) + 6.28 * torch.rand(n, 1))
    return (x + 0.5 * torch.randn(n, 64)).unsqueeze(1), kind


def fit(model, opt, pace, steps):
    for t in range(steps):
        pace.on_step(t)
        x, kind = waves(32)
        loss = F.cross_entropy(model(x), kind)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if t % 20 == 19:
            print(f"{t + 1} loss {loss.item():.4f}")


model = WaveHead()
opt = torch.optim.Adam([
    {"params": list(model.stem.parameters()), "lr": 5e-3},
    {"params": list(model.top.parameters()), "lr": 3e-2},
])
before = model.stem[0].weight.detach().clone()
fit(model, opt, Pace(opt, 80), 80)
print(f"stem moved {(model.stem[0].weight - before).norm().item():.4f}")
