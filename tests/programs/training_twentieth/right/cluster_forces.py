"""Message-passing potential for small argon-like clusters, fitted to energies and forces.

The forces are minus the gradient of the predicted energy by the positions, in training and in evaluation alike.
"""
import torch
from torch import nn

torch.manual_seed(17)
ATOMS = 6


def pair_distances(pos):
    diff = pos.unsqueeze(2) - pos.unsqueeze(1)
    eye = torch.eye(pos.shape[1], dtype=torch.bool)
    square = diff.pow(2).sum(-1).masked_fill(eye, 1.0)
    return square.sqrt(), ~eye


def reference(pos):
    """Morse-like pair energies with a weak three-body damping."""
    pos = pos.clone().requires_grad_(True)
    dist, pairs = pair_distances(pos)
    crowd = (torch.exp(-dist) * pairs).sum(-1)
    morse = ((1 - torch.exp(-1.5 * (dist - 1.4))) ** 2 - 1) * pairs
    energy = 0.5 * (morse.sum(-1) / (1 + 0.2 * crowd)).sum(-1) - 2.0 * ATOMS
    (grad,) = torch.autograd.grad(energy.sum(), pos)
    return energy.detach(), -grad


def sample_clusters(n):
    base = torch.tensor([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.5, 0.5, 1], [0.5, 0.5, -1]]) * 1.5
    return base + 0.18 * torch.randn(n, ATOMS, 3)


class Potential(nn.Module):
    def __init__(self, width=24, basis=12):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.6, 4.0, basis))
        self.register_buffer("atom_energy", torch.zeros(()))
        self.embed = nn.Parameter(torch.randn(width))
        self.filter = nn.Sequential(nn.Linear(basis, width), nn.SiLU(), nn.Linear(width, width))
        self.update = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
        nn.init.zeros_(self.readout[-1].weight)
        nn.init.zeros_(self.readout[-1].bias)

    def forward(self, pos):
        dist, pairs = pair_distances(pos)
        radial = torch.exp(-4.0 * (dist.unsqueeze(-1) - self.centres) ** 2)
        weight = self.filter(radial) * pairs.unsqueeze(-1)
        h = self.embed.expand(*pos.shape[:2], -1)
        for _ in range(2):
            h = h + self.update((weight * h.unsqueeze(1)).sum(2))
        return self.readout(h).sum((1, 2)) + ATOMS * self.atom_energy


def energy_and_forces(model, pos):
    with torch.enable_grad():
        pos = pos.detach().requires_grad_(True)
        energy = model(pos)
        (grad,) = torch.autograd.grad(energy.sum(), pos, create_graph=model.training)
    return (energy, -grad) if model.training else (energy.detach(), -grad)


@torch.no_grad()
def evaluate(model, pos, energy, forces):
    model.eval()
    e, f = energy_and_forces(model, pos)
    model.train()
    return (e - energy).abs().mean().item(), (f - forces).abs().mean().item()


def main():
    pos, pos_test = sample_clusters(400), sample_clusters(100)
    (energy, forces), (energy_test, forces_test) = reference(pos), reference(pos_test)
    model = Potential()
    model.atom_energy.fill_(energy.mean() / ATOMS)
    print("untrained: energy {:.4f}  forces {:.4f}".format(*evaluate(model, pos_test, energy_test, forces_test)))

    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=300)
    for step in range(300):
        index = torch.randint(0, len(pos), (32,))
        e, f = energy_and_forces(model, pos[index])
        loss = (f - forces[index]).pow(2).mean() + 0.05 * (e - energy[index]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 100 == 99:
            scores = evaluate(model, pos_test, energy_test, forces_test)
            print(f"step {step + 1}  loss {loss.item():.5f}  energy mae {scores[0]:.4f}  force mae {scores[1]:.4f}")
    print(f"mean force size {forces_test.abs().mean().item():.4f}")


if __name__ == "__main__":
    main()
