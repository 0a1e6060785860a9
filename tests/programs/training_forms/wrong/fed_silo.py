import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(3)


def make_silo(shift, n=240):
    x = torch.randn(n, 6) + shift
    w = torch.tensor([1.0, -2.0, 0.5, 0.0, 1.5, -0.7])
    y = x @ w + 0.4 * shift * torch.sin(2 * x[:, 0]) + 0.1 * torch.randn(n)
    return x, y.unsqueeze(1)


class Site:
    def __init__(self, shared, data, mu=5.0):
        self.x, self.y = data
        self.mu = mu
        self.local = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
        self.local.load_state_dict(shared.state_dict())
        anchor = [p.detach().clone() for p in shared.parameters()]
        self.pairs = zip(self.local.parameters(), anchor)
        self.opt = torch.optim.SGD(self.local.parameters(), lr=0.02)

    def proximal(self):
        return sum((p - a).square().sum() for p, a in self.pairs)

    def visit(self, steps):
        last = 0.0
        for _ in range(steps):
            rows = torch.randint(len(self.x), (32,))
            fit = F.mse_loss(self.local(self.x[rows]), self.y[rows])
            loss = fit + 0.5 * self.mu * self.proximal()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            last = fit.item()
        return last


shared = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
silos = [make_silo(s) for s in (-1.0, 0.0, 1.5)]
for rnd in range(4):
    sites = [Site(shared, d) for d in silos]
    fits = [s.visit(25) for s in sites]
    with torch.no_grad():
        drift = sum((p - q).norm().item() for s in sites
                    for p, q in zip(s.local.parameters(), shared.parameters()))
        for i, q in enumerate(shared.parameters()):
            q.copy_(torch.stack([list(s.local.parameters())[i] for s in sites]).mean(0))
    print(f"round {rnd} fit {sum(fits) / 3:.4f} drift {drift:.4f}")
