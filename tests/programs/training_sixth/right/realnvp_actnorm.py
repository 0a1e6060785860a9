"""RealNVP with data-dependent initialisation, fixed permutations and a checkpoint of the best validation epoch."""
import copy
import math

import torch
import torch.nn as nn


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.register_buffer("initialized", torch.tensor(False))

    def forward(self, x):
        if not self.initialized:
            with torch.no_grad():
                self.bias.copy_(-x.mean(0))
                self.log_scale.copy_(-(x.std(0) + 1e-6).log())
                self.initialized.fill_(True)
        return (x + self.bias) * self.log_scale.exp(), self.log_scale.sum().expand(x.size(0))


class Permute(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("order", torch.randperm(dim))

    def forward(self, x):
        return x[:, self.order], torch.zeros(x.size(0))


class Coupling(nn.Module):
    def __init__(self, dim, hidden=32):
        super().__init__()
        self.register_buffer("mask", (torch.arange(dim) % 2).float())
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 2 * dim))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        shift, log_s = self.net(x * self.mask).chunk(2, dim=1)
        log_s = torch.tanh(log_s) * (1 - self.mask)
        shift = shift * (1 - self.mask)
        return x * log_s.exp() + shift, log_s.sum(1)


class RealNVP(nn.Module):
    def __init__(self, dim, blocks=5):
        super().__init__()
        self.steps = nn.ModuleList()
        for _ in range(blocks):
            self.steps.extend([ActNorm(dim), Permute(dim), Coupling(dim)])

    def log_prob(self, x):
        log_det = torch.zeros(x.size(0))
        for step in self.steps:
            x, ld = step(x)
            log_det = log_det + ld
        return -0.5 * (x ** 2 + math.log(2 * math.pi)).sum(1) + log_det


def banana(n):
    a = torch.randn(n, 1) * 1.5
    b = 0.5 * a ** 2 + 0.4 * torch.randn(n, 1)
    c = torch.tanh(a - b) + 0.2 * torch.randn(n, 1)
    return torch.cat([a, b, c, torch.randn(n, 1)], dim=1)


torch.manual_seed(3)
train, valid = banana(1500), banana(500)
flow = RealNVP(4)
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
best, best_state = float("inf"), None
for epoch in range(15):
    for idx in torch.randperm(train.size(0)).split(100):
        loss = -flow.log_prob(train[idx]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        nll = -flow.log_prob(valid).mean().item()
    if nll < best:
        best, best_state = nll, copy.deepcopy(flow.state_dict())
    if epoch % 5 == 4:
        print(f"epoch {epoch} valid nll {nll:.3f}")

restored = RealNVP(4)
restored.load_state_dict(best_state)
with torch.no_grad():
    check = -restored.log_prob(valid).mean().item()
print(f"best {best:.4f} restored {check:.4f}")
