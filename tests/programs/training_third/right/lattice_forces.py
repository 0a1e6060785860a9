import torch
from torch import nn
import torch.nn.functional as F


class SitePotential(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.lift = nn.Linear(4, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)

    def forward(self, shift):
        left, right = shift.roll(1, -1), shift.roll(-1, -1)
        local = torch.stack([shift, shift - left, right - shift, shift**2], -1)
        return self.out(torch.tanh(self.norm(self.lift(local)))).sum((-2, -1))


def forces(model, shift, differentiable):
    shift = shift.detach().requires_grad_(True)
    energy = model(shift)
    (slope,) = torch.autograd.grad(energy.sum(), shift, create_graph=differentiable)
    return energy if differentiable else energy.detach(), -slope


def chain_energy(shift):
    return (0.5 * shift**2 + 0.3 * (shift.roll(-1, -1) - shift) ** 2 + 0.1 * shift**4).sum(-1)


def samples(n, g):
    shift = torch.randn(n, 8, generator=g).requires_grad_(True)
    energy = chain_energy(shift)
    (slope,) = torch.autograd.grad(energy.sum(), shift)
    return shift.detach(), energy.detach(), -slope


class Experiment:
    def __init__(self, model, train, held, lr=5e-3):
        self.model = model.eval()
        self.train, self.held = train, held
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def score(self):
        shift, energy, force = self.held
        e, f = forces(self.model, shift, differentiable=False)
        return F.l1_loss(e - e.mean(), energy - energy.mean()).item(), F.l1_loss(f, force).item()

    def epoch(self, batch=32):
        for rows in torch.arange(len(self.train[0])).split(batch):
            shift, energy, force = (t[rows] for t in self.train)
            e, f = forces(self.model, shift, differentiable=True)
            loss = 0.01 * F.mse_loss(e, energy) + F.mse_loss(f, force)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(4)
    run = Experiment(SitePotential(), samples(256, g), samples(64, g))
    for k in range(8):
        loss = run.epoch()
        e, f = run.score()
        print(f"epoch {k} loss {loss:.4f} energy {e:.4f} force {f:.4f}")
