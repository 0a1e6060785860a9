"""Find the emission pattern of a pollutant plume from a few sensors: a small network maps position and wind to the source
strength, and the stationary advection-diffusion equation is solved inside the training loop.

The solver has its own backward pass (discrete adjoint), which reuses the LU factors of the forward solve.
"""
import torch
from torch import nn

torch.manual_seed(5)
torch.set_default_dtype(torch.float64)
CELLS = 60
LENGTH = 1.0
DX = LENGTH / CELLS


class StationarySolve(torch.autograd.Function):
    """c = A^-1 q for a batch of operators A (B, n, n) and sources q (B, n)."""

    @staticmethod
    def forward(ctx, operator, source):
        lu, pivots = torch.linalg.lu_factor(operator)
        conc = torch.linalg.lu_solve(lu, pivots, source.unsqueeze(-1)).squeeze(-1)
        ctx.save_for_backward(lu, pivots)
        return conc

    @staticmethod
    def backward(ctx, grad_conc):
        lu, pivots = ctx.saved_tensors
        adjoint = torch.linalg.lu_solve(lu, pivots, grad_conc.unsqueeze(-1)).squeeze(-1)
        return None, adjoint


def build_operator(wind, diffusion=0.02, decay=0.3):
    """Upwind finite volumes, zero outside the domain; one matrix for each wind speed."""
    n = CELLS
    ahead = torch.diag(torch.ones(n - 1), 1)
    behind = torch.diag(torch.ones(n - 1), -1)
    eye = torch.eye(n)
    laplace = (ahead + behind - 2.0 * eye) / DX**2
    forward_wind = (eye - behind) / DX
    backward_wind = (ahead - eye) / DX
    w = wind.view(-1, 1, 1)
    return decay * eye - diffusion * laplace + w.clamp(min=0) * forward_wind + w.clamp(max=0) * backward_wind


class SourceField(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.register_buffer("x", (torch.arange(CELLS) + 0.5) * DX)
        self.register_buffer("freq", torch.arange(1.0, 7.0) * torch.pi)
        self.net = nn.Sequential(nn.Linear(12, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self):
        phase = self.x[:, None] * self.freq
        features = torch.cat([phase.sin(), phase.cos()], dim=-1)
        return nn.functional.softplus(self.net(features)).squeeze(-1)


def true_source(x):
    return 3.0 * torch.exp(-((x - 0.25) / 0.06) ** 2) + 1.5 * torch.exp(-((x - 0.65) / 0.1) ** 2)


def main():
    field = SourceField()
    wind = torch.empty(24).uniform_(0.2, 0.8)
    operators = build_operator(wind)
    truth = true_source(field.x)
    sensors = torch.arange(4, CELLS, 5)
    with torch.no_grad():
        clean = StationarySolve.apply(operators, truth.expand(len(wind), -1))
    readings = clean[:, sensors] + 0.01 * torch.randn(len(wind), len(sensors))

    optimizer = torch.optim.Adam(field.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=500)
    for step in range(500):
        batch = torch.randperm(len(wind))[:6]
        source = field()
        conc = StationarySolve.apply(operators[batch], source.expand(len(batch), -1))
        misfit = (conc[:, sensors] - readings[batch]).pow(2).mean()
        roughness = source.diff().pow(2).mean()
        loss = misfit + 1e-3 * roughness
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 100 == 0:
            print(f"step {step:4d}  misfit {misfit.item():.5f}  roughness {roughness.item():.4f}")

    with torch.no_grad():
        source = field()
        conc = StationarySolve.apply(operators, source.expand(len(wind), -1))
        misfit = (conc[:, sensors] - readings).pow(2).mean().item()
        error = ((source - truth).norm() / truth.norm()).item()
    print(f"misfit {misfit:.5f}  relative error of the source {error:.3f}")
    print(f"total emission {source.sum().item() * DX:.3f} (true {truth.sum().item() * DX:.3f})")
    return misfit, error


if __name__ == "__main__":
    main()
