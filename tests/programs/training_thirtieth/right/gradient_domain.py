"""An energy surface learned from forces alone (gradient-domain learning, Chmiela et al., 2017).

Forces fix the surface up to a constant, which is found afterwards from the reference energies.
"""
import torch
from torch import nn

torch.manual_seed(29)

ATOMS = 5
EPOCHS = 24
I, J = torch.triu_indices(ATOMS, ATOMS, offset=1)


def reference(pos, depth=1.3, stiff=1.5, r0=1.25):
    """Energies and forces of a Morse cluster."""
    vec = pos[:, I] - pos[:, J]
    r = vec.norm(dim=-1)
    ex = torch.exp(-stiff * (r - r0))
    energy = depth * (ex ** 2 - 2 * ex).sum(dim=1)
    pull = -(2 * depth * stiff * (ex - ex ** 2) / r).unsqueeze(-1) * vec
    force = torch.zeros_like(pos).index_add_(1, I, pull).index_add_(1, J, -pull)
    return energy, force


class Surface(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        pairs = len(I)
        self.body = nn.Sequential(nn.Linear(pairs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 1, bias=False)
        self.register_buffer("mean", torch.zeros(pairs))
        self.register_buffer("spread", torch.ones(pairs))
        self.register_buffer("constant", torch.zeros(()))

    @staticmethod
    def descriptor(pos):
        return 1.0 / (pos[:, I] - pos[:, J]).norm(dim=-1)

    @torch.no_grad()
    def standardize(self, pos):
        d = self.descriptor(pos)
        self.mean.copy_(d.mean(dim=0))
        self.spread.copy_(d.std(dim=0))

    def forward(self, pos):
        d = (self.descriptor(pos) - self.mean) / self.spread
        return self.head(self.body(d)).squeeze(-1) + self.constant

    def forces(self, pos):
        with torch.enable_grad():
            pos = pos.detach().requires_grad_(True)
            energy = self(pos)
            force, = torch.autograd.grad(-energy.sum(), pos, create_graph=self.training)
        return energy.detach(), force

    @torch.no_grad()
    def integrate_constant(self, pos, energy):
        self.constant += (energy - self(pos)).mean()


@torch.no_grad()
def evaluate(model, pos, energy, force):
    model.eval()
    e, f = model.forces(pos)
    model.train()
    return (e - energy).abs().mean().item(), (f - force).abs().mean().item()


def train(model, pos, force, batch=64):
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS, eta_min=2e-4)
    losses = []
    for epoch in range(EPOCHS):
        total = 0.0
        for rows in torch.randperm(len(pos)).split(batch):
            _, predicted = model.forces(pos[rows])
            loss = (predicted - force[rows]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        losses.append(total / len(pos))
        if epoch % 6 == 0 or epoch == EPOCHS - 1:
            print(f"epoch {epoch:3d}  force loss {losses[-1]:.5f}")
    return losses


def sample(count):
    base = torch.tensor([[1.0, 0, 0], [-0.5, 0.87, 0], [-0.5, -0.87, 0], [0, 0, 0.95], [0, 0, -0.95]])
    return base + 0.07 * torch.randn(count, ATOMS, 3)


if __name__ == "__main__":
    pos, new = sample(320), sample(100)
    energy, force = reference(pos)
    surface = Surface()
    surface.standardize(pos)
    losses = train(surface, pos, force)
    surface.integrate_constant(pos, energy)
    mae_e, mae_f = evaluate(surface, new, *reference(new))
    print(f"new configurations: energy error {mae_e:.4f}, force error {mae_f:.4f}")
