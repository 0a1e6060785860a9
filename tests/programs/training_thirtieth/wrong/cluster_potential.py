"""A pair potential for small metal clusters, learned from energies and forces.

Clusters of four, five and six atoms are padded to six and trained in buckets of equal size.
"""
import torch
from torch import nn

torch.manual_seed(3)

MAX_ATOMS = 6
EPOCHS = 18
SPREAD = {4: 0.74, 5: 0.9, 6: 1.0}
PAIRS = torch.triu_indices(MAX_ATOMS, MAX_ATOMS, offset=1)


def morse(pos, n, depth=1.0, stiff=1.4, r0=1.2):
    """Reference energies and forces of clusters of n atoms each."""
    i, j = torch.triu_indices(n, n, offset=1)
    vec = pos[:, i] - pos[:, j]
    r = vec.norm(dim=-1)
    ex = torch.exp(-stiff * (r - r0))
    energy = depth * (ex ** 2 - 2 * ex).sum(dim=1)
    slope = depth * 2 * stiff * (ex - ex ** 2)
    pull = -(slope / r).unsqueeze(-1) * vec
    force = torch.zeros_like(pos)
    force.index_add_(1, i, pull)
    force.index_add_(1, j, -pull)
    return energy, force


def make_bucket(n, count):
    """Clusters of n atoms on a distorted octahedron (small ones contract), with empty rows up to MAX_ATOMS."""
    corners = torch.tensor([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [-1.0, 0, 0], [0, -1.0, 0], [0, 0, -1.0]])
    pos = SPREAD[n] * corners[:n] + 0.12 * torch.randn(count, n, 3)
    energy, force = morse(pos, n)
    pad = MAX_ATOMS - n
    pos = torch.cat([pos, torch.zeros(count, pad, 3)], dim=1)
    force = torch.cat([force, torch.zeros(count, pad, 3)], dim=1)
    mask = torch.zeros(count, MAX_ATOMS, dtype=torch.bool)
    mask[:, :n] = True
    return {"n": n, "pos": pos, "energy": energy, "force": force, "mask": mask}


class PairNet(nn.Module):
    def __init__(self, basis=12, width=24):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.4, 2.8, basis))
        self.log_gamma = nn.Parameter(torch.tensor(2.5).log())
        self.mlp = nn.Sequential(nn.Linear(basis, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, pos, mask):
        i, j = PAIRS
        vec = pos[:, i] - pos[:, j]
        r = vec.pow(2).sum(dim=-1).sqrt()
        rbf = torch.exp(-self.log_gamma.exp() * (r.unsqueeze(-1) - self.centers) ** 2)
        pair = self.mlp(rbf).squeeze(-1)
        both = (mask[:, i] & mask[:, j]).to(pair.dtype)
        return (pair * both).sum(dim=1)


def energy_and_forces(model, pos, mask, train):
    pos = pos.clone().requires_grad_(True)
    energy = model(pos, mask)
    force = -torch.autograd.grad(energy.sum(), pos, create_graph=train)[0]
    return energy, force


def evaluate(model, buckets):
    errors = {}
    for b in buckets:
        energy, _ = energy_and_forces(model, b["pos"], b["mask"], train=False)
        errors[b["n"]] = (energy.detach() - b["energy"]).abs().mean().item() / b["n"]
    return errors


def train(model, buckets, batch=32):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    history = []
    for epoch in range(EPOCHS):
        total = count = 0
        work = [(b, rows) for b in buckets for rows in torch.randperm(len(b["pos"])).split(batch)]
        for k in torch.randperm(len(work)).tolist():
            b, rows = work[k]
            mask = b["mask"][rows]
            energy, force = energy_and_forces(model, b["pos"][rows], mask, train=True)
            loss_e = ((energy - b["energy"][rows]) / b["n"]).pow(2).mean()
            loss_f = (force[mask] - b["force"][rows][mask]).pow(2).mean()
            loss = loss_e + 0.2 * loss_f
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            if torch.isfinite(norm):
                optimizer.step()
            total, count = total + loss.item(), count + 1
        history.append(total / count)
        if epoch % 5 == 0 or epoch == EPOCHS - 1:
            print(f"epoch {epoch:3d}  loss {history[-1]:.4f}")
    return history


if __name__ == "__main__":
    buckets = [make_bucket(n, 96) for n in (4, 5, 6)]
    held_out = [make_bucket(n, 48) for n in (4, 5, 6)]
    model = PairNet()
    history = train(model, buckets)
    errors = evaluate(model, held_out)
    mean = sum(errors.values()) / len(errors)
    print(f"mean energy error on new clusters, per atom: {mean:.4f}")
