import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(14)


class WarmCosine:
    def __init__(self, opt, peak, warm, total):
        self.opt, self.peak, self.warm, self.total = opt, peak, warm, total
        self.count = 0

    def rate(self):
        if self.count < self.warm:
            return self.peak * (self.count + 1) / self.warm
        done = (self.count - self.warm) / (self.total - self.warm)
        return 0.5 * self.peak * (1 + math.cos(math.pi * done))

    def advance(self):
        for group in self.opt.param_groups:
            group["lr"] = self.rate()
        self.count += 1


class Tagger(nn.Module):
    def __init__(self, bins=24, tones=5):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 5, padding=2)
        self.norm = nn.GroupNorm(2, 8)
        self.head = nn.Linear(8 * bins, tones)

    def forward(self, x):
        return self.head(F.gelu(self.norm(self.conv(x[:, None]))).flatten(1))


def split_decay(net, rate):
    sides = {True: [], False: []}
    for p in net.parameters():
        sides[p.ndim > 1].append(p)
    return [
        {"params": sides[False], "weight_decay": 0.0, "lr": rate},
        {"params": sides[True], "weight_decay": 0.05, "lr": rate},
    ]


def tones(n, bins=24):
    label = torch.randint(5, (n,))
    grid = torch.linspace(0, 2 * math.pi, bins)
    phase = 0.5 * torch.randn(n, 1)
    return torch.sin((label[:, None] + 1) * grid + phase) + 0.7 * torch.randn(n, bins), label


x, y = tones(600)
net = Tagger()
opt = torch.optim.AdamW(split_decay(net, 2e-2))
plan = WarmCosine(opt, peak=2e-2, warm=20, total=120)
for step in range(120):
    plan.advance()
    rows = torch.randint(500, (40,))
    loss = F.cross_entropy(net(x[rows]), y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 29:
        print(f"step {step + 1}: loss {loss.item():.4f}")
with torch.no_grad():
    print(f"held-out loss {F.cross_entropy(net(x[500:]), y[500:]):.4f}")
