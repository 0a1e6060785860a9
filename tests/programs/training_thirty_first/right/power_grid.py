"""Predicts bus voltages of a power grid with an equilibrium layer, differentiated at its fixed point."""
import torch
from torch import nn
import torch.nn.functional as F

BUSES = 12
STATE = 24


def fixed_point(function, start, tolerance=1e-5, limit=60):
    z = start
    for _ in range(limit):
        following = function(z)
        change = (following - z).norm() / (following.norm() + 1e-8)
        z = following
        if change < tolerance:
            break
    return z


class Equilibrium(nn.Module):
    """Bai et al. 2019: z = tanh(W z + U x + b), with the gradient of the implicit function theorem."""

    def __init__(self, inputs, state, bound=0.9):
        super().__init__()
        self.weight = nn.Parameter(0.1 * torch.randn(state, state))
        self.inject = nn.Linear(inputs, state)
        self.bound = bound

    def cell(self, z, drive):
        weight = self.weight * (self.bound / self.weight.norm().clamp(min=self.bound))
        return torch.tanh(z @ weight.t() + drive)

    def forward(self, x):
        drive = self.inject(x)
        with torch.no_grad():
            z = fixed_point(lambda state: self.cell(state, drive), torch.zeros_like(drive))
        if not torch.is_grad_enabled():
            return z

        z = self.cell(z, drive)
        anchor = z.detach().requires_grad_()
        image = self.cell(anchor, drive)

        def solve_adjoint(grad):
            def pull_back(y):
                return torch.autograd.grad(image, anchor, y, retain_graph=True)[0] + grad

            return fixed_point(pull_back, grad)

        z.register_hook(solve_adjoint)
        return z


class VoltageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.equilibrium = Equilibrium(BUSES, STATE)
        self.read = nn.Linear(STATE, BUSES)

    def forward(self, loads):
        return self.read(self.equilibrium(loads))


class Grid:
    """Voltages settle where load, leakage and a saturating exchange with the neighbours are in balance."""

    def __init__(self):
        links = (torch.rand(BUSES, BUSES) < 0.3).float().triu(1)
        links = links + links.t()
        self.links = 0.8 * links / links.sum(dim=1, keepdim=True).clamp(min=1)

    def settle(self, loads):
        return fixed_point(lambda v: torch.tanh(v @ self.links.t() - loads), torch.zeros_like(loads))

    def sample(self, count):
        loads = 0.7 * torch.randn(count, BUSES)
        return loads, self.settle(loads)


def main():
    torch.manual_seed(8)
    grid = Grid()
    train_loads, train_voltages = grid.sample(500)
    test_loads, test_voltages = grid.sample(200)

    model = VoltageModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    steps = 120
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for step in range(steps):
        rows = torch.randint(0, len(train_loads), (48,))
        loss = F.mse_loss(model(train_loads[rows]), train_voltages[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if (step + 1) % 30 == 0:
            print(f"step {step + 1:3d}  loss {loss.item():.5f}")

    model.eval()
    with torch.no_grad():
        error = F.mse_loss(model(test_loads), test_voltages).item()
    print(f"test error {error:.5f}  (variance {test_voltages.var().item():.4f})")


if __name__ == "__main__":
    main()
