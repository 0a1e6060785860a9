"""A small message-passing potential fitted to energies and forces of random clusters of atoms."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ATOMS, SPECIES = 6, 3


def reference(species, positions):
    """Morse-like pair potential: energies and forces of a batch of clusters."""
    positions = positions.clone().requires_grad_(True)
    depth = torch.tensor([0.6, 1.0, 1.4])
    radius = torch.tensor([0.9, 1.1, 1.3])
    i, j = torch.triu_indices(ATOMS, ATOMS, offset=1)
    r = (positions[:, i] - positions[:, j]).norm(dim=-1)
    d = (depth[species[:, i]] * depth[species[:, j]]).sqrt()
    r0 = 0.5 * (radius[species[:, i]] + radius[species[:, j]])
    energy = (d * ((1 - torch.exp(-1.5 * (r - r0))) ** 2 - 1)).sum(dim=1)
    force = -torch.autograd.grad(energy.sum(), positions)[0]
    return energy.detach(), force


def make_clusters(n, generator):
    grid = torch.cartesian_prod(*[torch.arange(2.0)] * 3)[:ATOMS] * 1.3
    positions = grid + 0.18 * torch.randn(n, ATOMS, 3, generator=generator)
    species = torch.randint(0, SPECIES, (n, ATOMS), generator=generator)
    energy, force = reference(species, positions)
    return species, positions, energy, force


class MessageLayer(nn.Module):
    def __init__(self, width, radial):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(radial, width), nn.SiLU(), nn.Linear(width, width))
        self.update = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h, basis, mask):
        weights = self.filter(basis) * mask
        message = (weights * h.unsqueeze(1)).sum(dim=2)
        return h + self.update(message)


class Potential(nn.Module):
    def __init__(self, width=24, radial=12, layers=2):
        super().__init__()
        self.embed = nn.Embedding(SPECIES, width)
        self.layers = nn.ModuleList(MessageLayer(width, radial) for _ in range(layers))
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
        self.register_buffer("centres", torch.linspace(0.4, 3.4, radial))
        self.register_buffer("mask", 1 - torch.eye(ATOMS).unsqueeze(-1))

    def energy(self, species, positions):
        delta = positions.unsqueeze(2) - positions.unsqueeze(1)
        distance = (delta.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt()
        basis = torch.exp(-8.0 * (distance - self.centres) ** 2)
        h = self.embed(species)
        for layer in self.layers:
            h = layer(h, basis, self.mask)
        return self.readout(h).sum(dim=(1, 2))

    def forward(self, species, positions):
        positions = positions.detach().requires_grad_(True)
        energy = self.energy(species, positions)
        forces = -torch.autograd.grad(energy.sum(), positions, retain_graph=True)[0]
        return energy, forces


def evaluate(model, data):
    species, positions, energy, force = data
    predicted_energy, predicted_force = model(species, positions)
    return ((predicted_energy - energy).abs().mean().item(), (predicted_force - force).abs().mean().item())


def fit(model, train, valid, steps=200, batch=24, rho=10.0):
    species, positions, energy, force = train
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for step in range(steps):
        rows = torch.randint(0, len(energy), (batch,))
        predicted_energy, predicted_force = model(species[rows], positions[rows])
        energy_loss = F.mse_loss(predicted_energy, energy[rows])
        force_loss = F.mse_loss(predicted_force, force[rows])
        loss = energy_loss + rho * force_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 40 == 0 or step == steps - 1:
            mae_energy, mae_force = evaluate(model, valid)
            print(f"step {step:3d}  loss {loss.item():9.4f}  valid MAE  energy {mae_energy:.4f}  force {mae_force:.4f}")


if __name__ == "__main__":
    torch.manual_seed(14)
    generator = torch.Generator().manual_seed(6)
    train, valid = make_clusters(160, generator), make_clusters(60, generator)
    model = Potential()
    with torch.no_grad():
        model.readout[-1].bias.fill_(train[2].mean().item() / ATOMS)
    fit(model, train, valid)
