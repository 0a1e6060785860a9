import torch
from torch import nn


def pair_distances(pos):
    i, j = torch.triu_indices(pos.shape[1], pos.shape[1], 1)
    return (pos[:, i] - pos[:, j]).norm(dim=-1)


def morse(pos, depth=1.0, width=1.2, rest=1.1):
    r = pair_distances(pos)
    return (depth * (1 - torch.exp(-width * (r - rest))) ** 2).sum(-1)


class Potential(nn.Module):
    def __init__(self, basis=12, width=32, cutoff=3.0):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.3, cutoff, basis))
        self.gamma = 8.0
        self.net = nn.Sequential(nn.Linear(basis, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, pos):
        r = pair_distances(pos).unsqueeze(-1)
        rbf = torch.exp(-self.gamma * (r - self.centers) ** 2)
        return self.net(rbf).sum((-2, -1))


def energy_and_forces(model, pos):
    pos = pos.detach().requires_grad_()
    energy = model(pos)
    forces = -torch.autograd.grad(energy.sum(), pos, retain_graph=True)[0]
    return energy, forces


def dataset(count, atoms, seed):
    g = torch.Generator().manual_seed(seed)
    corners = torch.tensor([[0.0, 0, 0], [1.1, 0, 0], [0, 1.1, 0], [0, 0, 1.1]])[:atoms]
    pos = (corners + 0.15 * torch.randn(count, atoms, 3, generator=g)).requires_grad_()
    energy = morse(pos)
    forces = -torch.autograd.grad(energy.sum(), pos)[0]
    return pos.detach(), energy.detach(), forces


def train(model, data, epochs, batch=32, force_weight=10.0, lr=3e-3):
    pos, energy, forces = data
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        logs = torch.zeros(2)
        for idx in torch.randperm(len(pos)).split(batch):
            e, f = energy_and_forces(model, pos[idx])
            energy_loss = (e - energy[idx]).pow(2).mean()
            force_loss = (f - forces[idx]).pow(2).mean()
            loss = energy_loss + force_weight * force_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            logs += torch.tensor([energy_loss.item(), force_loss.item()]) * len(idx)
        e_err, f_err = (logs / len(pos)).tolist()
        print(f"epoch {epoch} energy mse {e_err:.4f} force mse {f_err:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    data = dataset(128, 4, seed=7)
    model = Potential()
    train(model, data, epochs=8)
