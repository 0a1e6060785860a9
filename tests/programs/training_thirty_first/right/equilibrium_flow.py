"""A deep equilibrium model that predicts pressures in a pipe network from its inflows."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(29)

NODES, STATE = 10, 32
TRAIN, TEST, BATCH, EPOCHS = 512, 256, 64, 5
TOLERANCE, MAX_ITER = 1e-5, 60


def fixed_point(function, start):
    """Plain iteration of a contraction, to a relative tolerance."""
    current = start
    for _ in range(MAX_ITER):
        following = function(current)
        change = (following - current).norm() / (following.norm() + 1e-8)
        current = following
        if change < TOLERANCE:
            break
    return current


class EquilibriumLayer(nn.Module):
    """z = tanh(W z + U x + b) with a bounded W; differentiated by the implicit function theorem."""

    def __init__(self, inputs, state, bound=0.8):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(state, state) / state ** 0.5)
        self.inject = nn.Linear(inputs, state)
        self.bound = bound

    def weight(self):
        return self.bound * self.raw / torch.linalg.matrix_norm(self.raw, ord=2)

    def forward(self, x):
        weight, drive = self.weight(), self.inject(x)

        def cell(z):
            return torch.tanh(F.linear(z, weight) + drive)

        with torch.no_grad():
            z = fixed_point(cell, torch.zeros_like(drive))
        if not torch.is_grad_enabled():
            return z
        z = cell(z)

        # one more application at a fresh leaf gives vector-Jacobian products at the solution
        leaf = z.detach().requires_grad_()
        image = cell(leaf)

        def solve_adjoint(grad):
            def adjoint(g):
                return torch.autograd.grad(image, leaf, g, retain_graph=True)[0] + grad

            return fixed_point(adjoint, grad)

        z.register_hook(solve_adjoint)
        return z


class PressureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = EquilibriumLayer(NODES, STATE)
        self.readout = nn.Linear(STATE, NODES)

    def forward(self, inflow):
        return self.readout(self.layer(inflow))


def make_network():
    pipes = (torch.rand(NODES, NODES) < 0.35).float() * (0.5 + torch.rand(NODES, NODES))
    pipes = pipes.triu(1)
    return pipes + pipes.t()


def solve_pressures(conductance, inflow):
    """Damped iteration for saturating flows between neighbours."""
    pressure = torch.zeros_like(inflow)
    for _ in range(100):
        drop = pressure.unsqueeze(2) - pressure.unsqueeze(1)
        flow = (conductance * torch.tanh(drop)).sum(dim=2)
        pressure = pressure + 0.1 * (inflow - flow - 0.3 * pressure)
    return pressure


@torch.no_grad()
def rmse(model, inflow, pressure):
    return F.mse_loss(model(inflow), pressure).sqrt().item()


conductance = make_network()
train_x, test_x = torch.randn(TRAIN, NODES), torch.randn(TEST, NODES)
train_y, test_y = solve_pressures(conductance, train_x), solve_pressures(conductance, test_x)

model = PressureNet()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.85)
print(f"spread of the pressures {test_y.std().item():.4f}, at the start rmse {rmse(model, test_x, test_y):.4f}")

for epoch in range(EPOCHS):
    total = 0.0
    for rows in torch.randperm(TRAIN).split(BATCH):
        loss = F.mse_loss(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    print(f"epoch {epoch + 1}  train mse {total / TRAIN:.4f}  test rmse {rmse(model, test_x, test_y):.4f}")
