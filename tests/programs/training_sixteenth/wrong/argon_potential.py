"""Project for 'Computational Chemistry II': a neural pair potential for small argon clusters.

Reference energies and forces come from the Lennard-Jones potential (reduced units). The network
is trained on both, since each configuration gives one energy but 3N force components.
"""
import torch
import torch.nn as nn

N_ATOMS = 5
FORCE_WEIGHT = 10.0


def pair_distances(pos):
    i, j = torch.triu_indices(N_ATOMS, N_ATOMS, offset=1)
    return (pos[:, i] - pos[:, j]).norm(dim=-1)


def lennard_jones(pos):
    inv6 = pair_distances(pos) ** -6
    return (4 * (inv6 ** 2 - inv6)).sum(1)


def sample_clusters(n, gen):
    """Distorted trigonal bipyramids; configurations with very close atoms are thrown away."""
    base = torch.tensor([[0.0, 0.0, 0.9], [0.0, 0.0, -0.9], [0.65, 0.0, 0.0],
                         [-0.33, 0.56, 0.0], [-0.33, -0.56, 0.0]]) * 1.05
    kept = []
    while sum(len(k) for k in kept) < n:
        scale = 0.95 + 0.5 * torch.rand(256, 1, 1, generator=gen)
        pos = base * scale + 0.12 * torch.randn(256, N_ATOMS, 3, generator=gen)
        kept.append(pos[pair_distances(pos).min(1).values > 0.95])
    pos = torch.cat(kept)[:n].requires_grad_(True)
    energy = lennard_jones(pos)
    forces = -torch.autograd.grad(energy.sum(), pos)[0]
    return pos.detach(), energy.detach(), forces


class PairPotential(nn.Module):
    def __init__(self, n_rbf=16, hidden=32):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.8, 3.0, n_rbf))
        self.gamma = 25.0
        self.net = nn.Sequential(nn.Linear(n_rbf, hidden), nn.SiLU(), nn.Linear(hidden, hidden),
                                 nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, pos):
        d = pair_distances(pos).unsqueeze(-1)
        rbf = torch.exp(-self.gamma * (d - self.centers) ** 2)
        return self.net(rbf).squeeze(-1).sum(1)


def energy_and_forces(model, pos):
    pos = pos.clone().requires_grad_(True)
    energy = model(pos)
    grad, = torch.autograd.grad(energy, pos, grad_outputs=torch.ones_like(energy), retain_graph=True)
    return energy, -grad


def evaluate(model, data):
    pos, energy, forces = data
    e, f = energy_and_forces(model, pos)
    return (e - energy).abs().mean().item(), (f - forces).abs().mean().item()


def train(model, data, epochs=120, batch=40):
    pos, energy, forces = data
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        for idx in torch.randperm(len(pos)).split(batch):
            e, f = energy_and_forces(model, pos[idx])
            energy_loss = ((e - energy[idx]) ** 2).mean() / N_ATOMS
            force_loss = ((f - forces[idx]) ** 2).mean()
            loss = energy_loss + FORCE_WEIGHT * force_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        if epoch % 40 == 39:
            print(f"epoch {epoch + 1:3d}  energy loss {energy_loss.item():.4f}  force loss {force_loss.item():.4f}")


def main():
    torch.manual_seed(11)
    gen = torch.Generator().manual_seed(5)
    train_data, test_data = sample_clusters(160, gen), sample_clusters(200, gen)
    model = PairPotential()
    train(model, train_data)
    energy_mae, force_mae = evaluate(model, test_data)
    print(f"test: energy MAE {energy_mae:.3f}, force MAE {force_mae:.3f}")
    return model, energy_mae, force_mae


if __name__ == "__main__":
    main()
