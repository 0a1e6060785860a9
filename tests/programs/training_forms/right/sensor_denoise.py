import math

import torch
from torch import nn

torch.manual_seed(71)
POINTS, BASIS = 32, 32


class Gate(nn.Module):
    def __init__(self, size, level=0.4):
        super().__init__()
        self.level = nn.Parameter(torch.full((size,), level))

    def forward(self, code):
        keep = torch.sigmoid((code.abs() - self.level) / 0.1)
        return code * keep


class Cleaner(nn.Module):
    def __init__(self):
        super().__init__()
        self.analysis = nn.Linear(POINTS, BASIS, bias=False)
        self.gate = Gate(BASIS)
        self.synthesis = nn.Linear(BASIS, POINTS, bias=False)
        nn.init.orthogonal_(self.analysis.weight)
        with torch.no_grad():
            self.synthesis.weight.copy_(self.analysis.weight.T)

    def forward(self, x):
        return self.synthesis(self.gate(self.analysis(x)))


def signals(n):
    t = torch.linspace(0, 2 * math.pi, POINTS)
    speed = torch.randint(1, 6, (n, 1)).float()
    clean = torch.sin(speed * t + 6 * torch.rand(n, 1)) * (0.5 + torch.rand(n, 1))
    return clean, clean + 0.4 * torch.randn(n, POINTS)


def batches(count, size=64):
    for _ in range(count):
        yield signals(size)


net = Cleaner()
opt = torch.optim.Adam(
    [
        {"params": [*net.analysis.parameters(), *net.synthesis.parameters()], "lr": 2e-3},
        {"params": [net.gate.level], "lr": 1e-2},
    ]
)
for step, (clean, noisy) in enumerate(batches(150), 1):
    loss = (net(noisy) - clean).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 0:
        level = net.gate.level.detach()
        print(f"step {step}: loss {loss.item():.4f} level {level.mean():.3f} +- {level.std():.3f}")

with torch.no_grad():
    clean, noisy = signals(300)
    print(f"noise {(noisy - clean).pow(2).mean():.4f} left {(net(noisy) - clean).pow(2).mean():.4f}")
