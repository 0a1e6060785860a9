import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(4)
ATOMS = 4
upper = torch.triu_indices(ATOMS, ATOMS, offset=1)


def distances(pos):
    delta = pos[:, upper[0]] - pos[:, upper[1]]
    return (delta.square().sum(-1) + 1e-6).sqrt()


class PairEnergy(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = nn.Sequential(nn.Linear(1, 32), nn.Softplus(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, 1))

    def forward(self, pos):
        return self.pair(distances(pos).unsqueeze(-1)).sum((1, 2))


def reference(pos):
    r = distances(pos)
    return (0.5 * (r - 1.2).square() + 0.3 * torch.exp(-2 * r)).sum(1)


def configurations(n):
    pos = torch.randn(n, ATOMS, 3).requires_grad_()
    energy = reference(pos)
    (slope,) = torch.autograd.grad(energy.sum(), pos)
    return pos.detach(), energy.detach(), -slope


class Fitter:
    def __init__(self, lr=5e-3):
        self.model = PairEnergy()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)

    def losses(self, pos, energy, force):
        pos = pos.clone().requires_grad_()
        guess = self.model(pos)
        slope = torch.autograd.grad(guess.sum(), pos, retain_graph=True)[0]
        return F.mse_loss(guess, energy), F.mse_loss(-slope, force)

    def step(self, batch):
        e, f = self.losses(*batch)
        total = 0.1 * e + 10 * f
        self.opt.zero_grad()
        total.backward()
        self.opt.step()
        return e.item(), f.item()


fitter = Fitter()
for it in range(150):
    e, f = fitter.step(configurations(32))
    if it % 30 == 29:
        print(f"{it + 1} energy {e:.4f} forces {f:.5f}")
