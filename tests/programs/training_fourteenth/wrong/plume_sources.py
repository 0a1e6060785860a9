"""Recover emission rates, wind and diffusivity from station readings of a steady advection-diffusion plume."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)
torch.set_default_dtype(torch.float64)

N = 64
N_EPISODES, N_STATIONS = 24, 14
DX = 1.0 / N
N_FEATURES = 6


class SteadyState(torch.autograd.Function):
    """x = A^-1 b with the gradient from the implicit function theorem: one more solve instead of unrolling."""

    @staticmethod
    def forward(ctx, matrix, rhs):
        lu, pivots = torch.linalg.lu_factor(matrix)
        x = torch.linalg.lu_solve(lu, pivots, rhs)
        ctx.save_for_backward(lu, pivots, x)
        return x

    @staticmethod
    def backward(ctx, grad_x):
        lu, pivots, x = ctx.saved_tensors
        adjoint = torch.linalg.lu_solve(lu, pivots, grad_x)
        grad_matrix = -adjoint @ x.T if ctx.needs_input_grad[0] else None
        return grad_matrix, adjoint


def operator(wind, diffusivity, decay=1.0):
    """Upwind transport, central diffusion and first-order decay on a line with open ends."""
    eye = torch.eye(N)
    lower = torch.diag(torch.ones(N - 1), -1)
    upper = torch.diag(torch.ones(N - 1), 1)
    transport = wind / DX * (eye - lower)
    diffusion = diffusivity / DX ** 2 * (2 * eye - lower - upper)
    return transport + diffusion + decay * eye


class EmissionModel(nn.Module):
    """Activity data of an episode -> emission per cell, then the steady concentration field."""

    def __init__(self):
        super().__init__()
        self.response = nn.Sequential(nn.Linear(N_FEATURES, 24), nn.Tanh(), nn.Linear(24, 8), nn.Softplus())
        position = (torch.arange(N) + 0.5) * DX
        centres = torch.linspace(0.08, 0.92, 8)
        footprint = torch.exp(-0.5 * ((position[:, None] - centres) / 0.04) ** 2)
        self.register_buffer("footprint", footprint)
        self.log_wind = nn.Parameter(torch.tensor(0.0))
        self.log_diffusivity = nn.Parameter(torch.tensor(-3.0))

    def emissions(self, activity):
        return self.footprint @ self.response(activity).T

    def forward(self, activity):
        matrix = operator(self.log_wind.exp(), self.log_diffusivity.exp())
        return SteadyState.apply(matrix, self.emissions(activity))


true_wind, true_diffusivity = torch.tensor(2.5), torch.tensor(0.02)
truth = EmissionModel()
activity = torch.rand(2 * N_EPISODES, N_FEATURES)
with torch.no_grad():
    truth.response[0].weight.mul_(3.0)
    truth.response[2].weight.mul_(3.0)
    true_emissions = truth.emissions(activity)
    field = torch.linalg.solve(operator(true_wind, true_diffusivity), true_emissions)
stations = torch.randperm(N)[:N_STATIONS].sort().values
readings = field[stations] * (1 + 0.01 * torch.randn(N_STATIONS, 2 * N_EPISODES))
unit = readings.std()

model = EmissionModel()
optimizer = torch.optim.Adam([
    {"params": model.response.parameters(), "lr": 1e-2},
    {"params": [model.log_wind, model.log_diffusivity], "lr": 2e-2},
])
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=600)

fit, held_out = slice(0, N_EPISODES), slice(N_EPISODES, None)
for it in range(600):
    predicted = model(activity[fit])
    loss = F.mse_loss(predicted[stations] / unit, readings[:, fit] / unit)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if (it + 1) % 150 == 0:
        print(f"iter {it + 1:3d}  misfit {loss.item():.5f}  wind {model.log_wind.exp().item():.3f}  "
              f"diffusivity {model.log_diffusivity.exp().item():.4f}")

with torch.no_grad():
    misfit = F.mse_loss(model(activity[held_out])[stations] / unit, readings[:, held_out] / unit).item()
    error = (model.emissions(activity) - true_emissions).norm() / true_emissions.norm()
print(f"held-out misfit {misfit:.5f}   relative emission error {error.item():.3f}   true wind {true_wind.item():.2f}")
