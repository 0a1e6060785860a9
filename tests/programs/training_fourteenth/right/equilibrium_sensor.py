"""Deep equilibrium network that learns the response of a recurrent chemical sensor array with cross-talk."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(13)

N_GAS, N_SENSORS, WIDTH = 5, 8, 24
N_TRAIN, N_TEST = 512, 256
TOL, MAX_ITER = 1e-5, 60


def fixed_point(f, start):
    """Plain Picard iteration; the map is a contraction."""
    z = start
    for n in range(1, MAX_ITER + 1):
        nxt = f(z)
        done = (nxt - z).norm() <= TOL * (1e-6 + nxt.norm())
        z = nxt
        if done:
            break
    return z, n


class Equilibrium(nn.Module):
    """z* = tanh(0.8 W z* + U x + b); gradients from the implicit function theorem."""

    def __init__(self, n_in, width):
        super().__init__()
        self.recurrent = spectral_norm(nn.Linear(width, width, bias=False), n_power_iterations=3)
        self.inject = nn.Linear(n_in, width)
        self.forward_iterations = self.backward_iterations = 0

    def forward(self, x):
        weight = self.recurrent.weight
        drive = self.inject(x)

        def cell(z, w, u):
            return torch.tanh(0.8 * F.linear(z, w) + u)

        with torch.no_grad():
            z, self.forward_iterations = fixed_point(lambda z: cell(z, weight, drive), torch.zeros_like(drive))
        if not torch.is_grad_enabled():
            return z

        z = cell(z, weight, drive)
        z0 = z.detach().requires_grad_()
        f0 = cell(z0, weight.detach(), drive.detach())

        def solve_adjoint(grad):
            def step(g):
                return torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
            g, self.backward_iterations = fixed_point(step, grad)
            return g

        z.register_hook(solve_adjoint)
        return z


class Sensor(nn.Module):
    def __init__(self):
        super().__init__()
        self.core = Equilibrium(N_GAS, WIDTH)
        self.readout = nn.Linear(WIDTH, N_SENSORS)

    def forward(self, gas):
        return self.readout(self.core(gas))


def sensor_array(gas, coupling, affinity):
    """Mutually inhibiting sensors, relaxed to their steady state."""
    reading = torch.zeros(len(gas), N_SENSORS)
    for _ in range(300):
        reading = 0.7 * reading + 0.3 * torch.tanh(gas @ affinity - reading @ coupling)
    return reading


coupling = 0.35 * torch.rand(N_SENSORS, N_SENSORS)
affinity = 1.2 * torch.rand(N_GAS, N_SENSORS)
gas = torch.rand(N_TRAIN + N_TEST, N_GAS) * 2
reading = sensor_array(gas, coupling, affinity) + 0.005 * torch.randn(N_TRAIN + N_TEST, N_SENSORS)

model = Sensor()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)

for epoch in range(40):
    model.train()
    for idx in torch.randperm(N_TRAIN).split(64):
        loss = F.mse_loss(model(gas[idx]), reading[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if (epoch + 1) % 8 == 0:
        model.eval()
        with torch.no_grad():
            rmse = F.mse_loss(model(gas[N_TRAIN:]), reading[N_TRAIN:]).sqrt().item()
        print(f"epoch {epoch + 1:2d}  train mse {loss.item():.6f}  test rmse {rmse:.4f}  "
              f"iterations {model.core.forward_iterations} / {model.core.backward_iterations}")

print(f"noise floor 0.0050, spread of the readings {reading.std().item():.4f}")
