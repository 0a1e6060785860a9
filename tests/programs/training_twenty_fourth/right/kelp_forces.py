"""Interatomic potential trained on forces only (force matching) for small Morse clusters."""
import torch
import torch.nn as nn
import torch.nn.functional as F

N_ATOMS, N_BASIS, CUTOFF = 6, 16, 4.0


def pair_distances(pos):
    i, j = torch.triu_indices(N_ATOMS, N_ATOMS, offset=1)
    return (pos[:, i] - pos[:, j]).norm(dim=-1)


def reference_energy(pos):
    d = pair_distances(pos)
    return (1.0 - torch.exp(-1.4 * (d - 1.3))).square().sum(1) - 3.0  # Morse pairs and a constant per cluster


def make_set(n, gen):
    """Perturbed octahedra with their reference energies and forces."""
    octahedron = 0.85 * torch.tensor([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1.0]])
    scale = 0.9 + 0.5 * torch.rand(n, 1, 1, generator=gen)
    pos = scale * octahedron + 0.10 * torch.randn(n, N_ATOMS, 3, generator=gen)
    pos.requires_grad_(True)
    energy = reference_energy(pos)
    (slope,) = torch.autograd.grad(energy.sum(), pos)
    return pos.detach(), energy.detach(), -slope


class PairPotential(nn.Module):
    """Sum of a learned function over all pairs; smooth activations, since forces are its derivative."""

    def __init__(self, width=32):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.4, CUTOFF, N_BASIS))
        self.pair = nn.Sequential(nn.Linear(N_BASIS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                  nn.Linear(width, 1, bias=False))
        self.offset = nn.Parameter(torch.zeros(()))

    def forward(self, pos):
        d = pair_distances(pos)
        basis = torch.exp(-4.0 * (d[..., None] - self.centers) ** 2)
        envelope = 0.5 * (torch.cos(torch.pi * (d / CUTOFF).clamp(max=1.0)) + 1.0)
        return (self.pair(basis).squeeze(-1) * envelope).sum(1) + self.offset


def predict(model, pos, training):
    with torch.enable_grad():
        pos = pos.detach().requires_grad_(True)
        energy = model(pos)
        (slope,) = torch.autograd.grad(energy.sum(), pos, create_graph=training)
    return energy, -slope


def evaluate(model, pos, energy, forces):
    model.eval()
    with torch.no_grad():
        e, f = predict(model, pos, training=False)
        return (e - energy).abs().mean().item(), (f - forces).abs().mean().item()


@torch.no_grad()
def calibrate_offset(model, pos, energy):
    """Forces fix the energy up to a constant; set it so that the mean energies agree."""
    model.offset += (energy - model(pos)).mean()


def train(model, data, steps=500, batch=48, lr=5e-3):
    pos, _, forces = data
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=lr, total_steps=steps)
    for step in range(1, steps + 1):
        model.train()
        idx = torch.randint(len(pos), (batch,))
        _, f = predict(model, pos[idx], training=True)
        loss = F.mse_loss(f, forces[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 100 == 0:
            print(f"step {step}  force mse {loss.item():.5f}")
    return model


def main():
    torch.manual_seed(29)
    gen = torch.Generator().manual_seed(29)
    data, test = make_set(1500, gen), make_set(300, gen)
    model = train(PairPotential(), data)
    e_mae, f_mae = evaluate(model, *test)
    print(f"before calibration: energy mae {e_mae:.4f}  force mae {f_mae:.4f}")
    calibrate_offset(model, data[0], data[1])
    e_mae, f_mae = evaluate(model, *test)
    print(f"after calibration:  energy mae {e_mae:.4f}  force mae {f_mae:.4f}")
    print(f"spread of the references: energy {test[1].std().item():.3f}  force {test[2].abs().mean().item():.3f}")
    return model


if __name__ == "__main__":
    main()
