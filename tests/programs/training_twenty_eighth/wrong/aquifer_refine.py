"""Conductivity of a one-dimensional aquifer from head measurements, with a coarse-to-fine parameterisation."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CELLS = 48
LEVELS = (4, 12, 24)


class LogField(nn.Module):
    """Log conductivity on a coarse set of knots, linearly interpolated to the simulation cells."""

    def __init__(self, knots):
        super().__init__()
        self.values = nn.Parameter(torch.zeros(1, 1, knots))

    @property
    def knots(self):
        return self.values.shape[-1]

    def refine(self, knots):
        """Carry the current estimate over to a finer set of knots."""
        finer = F.interpolate(self.values.detach(), size=knots, mode="linear", align_corners=True)
        self.values = nn.Parameter(finer)

    def forward(self):
        fine = F.interpolate(self.values, size=CELLS + 1, mode="linear", align_corners=True)
        return fine.flatten()


class DarcySolver(nn.Module):
    """Steady flow -(k h')' = q with h = 0 at both ends, finite volumes, one column per pumping test."""

    def __init__(self, tests=6):
        super().__init__()
        centres = (torch.arange(CELLS) + 0.5) / CELLS
        wells = torch.linspace(0.1, 0.9, tests)
        self.register_buffer("sources", torch.exp(-((centres[:, None] - wells) / 0.04) ** 2) * 20.0)
        self.h = 1.0 / CELLS

    def forward(self, log_k):
        k = log_k.exp()
        scale = 1.0 / self.h ** 2
        main = (k[:-1] + k[1:]) * scale
        off = -k[1:-1] * scale
        matrix = torch.diag(main) + torch.diag(off, 1) + torch.diag(off, -1)
        return torch.linalg.solve(matrix, self.sources)


def true_log_field():
    x = torch.linspace(0, 1, CELLS + 1)
    return 0.8 * torch.sin(9.0 * x) + 0.7 * torch.cos(23.0 * x) - 0.4 * x


def roughness(field):
    step = field.values.diff(dim=-1) * (field.knots - 1)
    return step.pow(2).mean()


def observe(solver, noise=0.002):
    with torch.no_grad():
        heads = solver(true_log_field())
    rows = torch.arange(1, CELLS, 2)
    return rows, heads[rows] + noise * heads.std() * torch.randn(len(rows), heads.shape[1])


def fit_level(field, solver, optimizer, rows, data, steps):
    size = data.pow(2).mean()
    for _ in range(steps):
        heads = solver(field())
        misfit = F.mse_loss(heads[rows], data) / size
        loss = misfit + 1e-6 * roughness(field)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return misfit.item()


def main(steps=150):
    torch.manual_seed(5)
    solver = DarcySolver()
    rows, data = observe(solver)
    field = LogField(LEVELS[0])
    optimizer = torch.optim.Adam(field.parameters(), lr=0.05)
    history = []
    for level, knots in enumerate(LEVELS):
        if level > 0:
            field.refine(knots)
            for group in optimizer.param_groups:
                group["lr"] *= 0.7
        misfit = fit_level(field, solver, optimizer, rows, data, steps)
        history.append(misfit)
        print(f"{knots:3d} knots  relative misfit {misfit:.6f}")
    with torch.no_grad():
        error = (field() - true_log_field()).pow(2).mean().sqrt().item()
    print(f"rms error of log conductivity: {error:.4f}")
    return field, optimizer, history, error


if __name__ == "__main__":
    estimate, solver_optimizer, misfits, field_error = main()
