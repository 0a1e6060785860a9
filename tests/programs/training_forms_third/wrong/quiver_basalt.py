import torch
from torch import nn

torch.manual_seed(59)


class GraphLayer(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.own, self.near = nn.Linear(a, b), nn.Linear(a, b, bias=False)

    def forward(self, h, bonds):
        return torch.relu(self.own(h) + self.near(bonds @ h))


class Molecule(nn.Module):
    def __init__(self, properties):
        super().__init__()
        self.layers = nn.ModuleList([GraphLayer(5, 24), GraphLayer(24, 24)])
        self.heads = nn.ModuleDict({name: nn.Linear(24, 1) for name in properties})

    def forward(self, atoms, bonds, name):
        for layer in self.layers:
            atoms = layer(atoms, bonds)
        return self.heads[name](atoms.mean(dim=1)).squeeze(-1)


class Gradients:
    def __init__(self, params):
        self.params = list(params)

    def forget(self):
        for p in self.params:
            p.grad = None

    def collect(self, loss):
        self.forget()
        torch.autograd.backward(loss)


def synth(n):
    atoms = torch.randn(n, 8, 5)
    link = (torch.rand(n, 8, 8) < 0.3).float()
    bonds = torch.clamp(link + link.transpose(1, 2), max=1)
    size = bonds.sum((1, 2)) / 20
    return atoms, bonds, {"dipole": atoms[..., 0].sum(1) / 4, "gap": atoms[..., 1].abs().mean(1), "energy": size}


PROPERTIES = ("dipole", "gap", "energy")
model = Molecule(PROPERTIES)
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
gradients = Gradients(model.parameters())
for it in range(100):
    atoms, bonds, truth = synth(32)
    seen = {}
    for name in PROPERTIES:
        loss = (model(atoms, bonds, name) - truth[name]).square().mean()
        gradients.collect(loss / len(PROPERTIES))
        seen[name] = loss.item()
    opt.step()
    if it % 25 == 24:
        print(it + 1, " ".join(f"{k} {v:.4f}" for k, v in seen.items()))
