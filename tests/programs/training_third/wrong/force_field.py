import torch
from torch import nn
import torch.nn.functional as F


class PairPotential(nn.Module):
    def __init__(self, basis=12, width=32, cutoff=4.0):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.5, cutoff, basis))
        self.net = nn.Sequential(nn.Linear(basis, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def energy(self, pos):
        i, j = torch.triu_indices(pos.shape[1], pos.shape[1], offset=1)
        dist = (pos[:, i] - pos[:, j]).pow(2).sum(-1).add(1e-6).sqrt()
        return self.net(torch.exp(-4 * (dist[..., None] - self.centres) ** 2)).sum((-2, -1))

    def forward(self, pos):
        pos = pos.detach().requires_grad_(True)
        energy = self.energy(pos)
        (slope,) = torch.autograd.grad(energy.sum(), pos, create_graph=self.training, retain_graph=True)
        return energy, -slope


def reference(pos):
    pos = pos.clone().requires_grad_(True)
    i, j = torch.triu_indices(pos.shape[1], pos.shape[1], offset=1)
    dist = (pos[:, i] - pos[:, j]).norm(dim=-1)
    energy = ((1 - torch.exp(-(dist - 1.5))) ** 2 - 1).sum(-1)
    (slope,) = torch.autograd.grad(energy.sum(), pos)
    return pos.detach(), energy.detach(), -slope


class Fit:
    def __init__(self, model, train, valid, force_weight=5.0):
        self.model, self.train_set, self.valid_set = model, train, valid
        self.force_weight = force_weight
        self.opt = torch.optim.Adam(model.parameters(), lr=3e-3)
        self.trace = []

    def losses(self, batch):
        pos, energy, force = batch
        e, f = self.model(pos)
        return F.mse_loss(e, energy), F.mse_loss(f, force)

    def validate(self):
        self.model.eval()
        e, f = self.losses(self.valid_set)
        return e.item(), f.item()

    def run(self, epochs=10, batch=32):
        self.model.train()
        for epoch in range(epochs):
            for rows in torch.arange(len(self.train_set[0])).split(batch):
                e, f = self.losses([t[rows] for t in self.train_set])
                self.opt.zero_grad()
                (e + self.force_weight * f).backward()
                self.opt.step()
            self.trace.append(self.validate())
            print(f"epoch {epoch} energy {self.trace[-1][0]:.4f} force {self.trace[-1][1]:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    grid = torch.tensor([[0.0, 0, 0], [1.6, 0, 0], [0, 1.6, 0], [0, 0, 1.6]])
    data = reference(grid + 0.25 * torch.randn(224, 4, 3))
    fit = Fit(PairPotential(), [t[:160] for t in data], [t[160:] for t in data])
    fit.run()
