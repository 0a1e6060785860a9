"""Predict the settled temperatures of a heated plate with an equilibrium layer (implicit differentiation)."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import grad

torch.manual_seed(6)

HEATERS = 6
PROBES = 8
STATE = 20
BATCH = 64
STEPS = 120


def iterate(step, start, limit=60, tolerance=1e-6):
    """Repeat `step` until it changes its argument no more."""
    current = start
    for _ in range(limit):
        following = step(current)
        change = (following - current).norm() / (following.norm() + 1e-9)
        current = following
        if change < tolerance:
            break
    return current


class Cell(nn.Module):
    """One contracting update of the state, given the heaters."""

    def __init__(self, inputs=HEATERS, width=STATE):
        super().__init__()
        self.mixing = nn.Parameter(torch.randn(width, width))
        self.drive = nn.Linear(inputs, width)

    def forward(self, state, heaters):
        mixing = 0.95 * self.mixing / torch.linalg.matrix_norm(self.mixing)
        return torch.tanh(state @ mixing.t() + self.drive(heaters))


class Equilibrium(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, heaters):
        with torch.no_grad():
            start = heaters.new_zeros(len(heaters), STATE)
            settled = iterate(lambda state: self.cell(state, heaters), start)
        settled = self.cell(settled, heaters)
        if settled.requires_grad:
            point = settled.detach().clone().requires_grad_()
            image = self.cell(point, heaters)

            def solve(incoming):
                return iterate(lambda g: grad(image, point, g, retain_graph=True)[0] + incoming, incoming)

            settled.register_hook(solve)
        return settled


class PlateModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.settle = Equilibrium(Cell())
        self.read = nn.Linear(STATE, PROBES)

    def forward(self, heaters):
        return self.read(self.settle(heaters))


class Plate:
    """A small conducting plate: the settled temperatures solve a linear system with saturated heating."""

    def __init__(self):
        links = torch.rand(PROBES, PROBES)
        links = (links + links.t()) / 2
        self.system = torch.diag(links.sum(1) + 0.5) - links
        self.feed = torch.rand(PROBES, HEATERS)

    def measure(self, count):
        heaters = torch.randn(count, HEATERS)
        power = torch.tanh(1.5 * heaters) @ self.feed.t()
        return heaters, torch.linalg.solve(self.system, power.t()).t()


@torch.no_grad()
def test_error(model, heaters, temperatures):
    model.eval()
    error = F.mse_loss(model(heaters), temperatures).item()
    model.train()
    return error


if __name__ == "__main__":
    plate = Plate()
    held_out = plate.measure(200)
    model = PlateModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    print(f"start  error {test_error(model, *held_out):.4f}")
    for step in range(STEPS):
        heaters, temperatures = plate.measure(BATCH)
        loss = F.mse_loss(model(heaters), temperatures)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 30 == 0:
            print(f"step {step + 1:4d}  loss {loss.item():.4f}")
    print(f"end    error {test_error(model, *held_out):.4f}")
