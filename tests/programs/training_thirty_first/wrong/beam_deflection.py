"""Stiffness of a simply supported beam from a few gauges, with a physics-informed network.

The beam of unit length carries a uniform load.  The network gives the deflection w(x); the bending equation
EI w'' + M = 0 holds along the beam, with the bending moment M(x) known and the stiffness EI to be found.
"""
import torch
from torch import nn

LOAD = 1.0
STIFFNESS = 0.05
STEPS = 200
W_BEND, W_TILT, W_ENDS = 1.0, 0.5, 10.0


def bending_moment(x):
    return 0.5 * LOAD * x * (1.0 - x)


def exact_deflection(x):
    return LOAD * x * (1.0 - 2.0 * x**2 + x**3) / (24.0 * STIFFNESS)


def exact_slope(x):
    return LOAD * (1.0 - 6.0 * x**2 + 4.0 * x**3) / (24.0 * STIFFNESS)


class Deflection(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(2.0 * x - 1.0)


class Beam(nn.Module):
    """The unknown of the inverse problem, kept positive by its logarithm."""

    def __init__(self, guess=0.12):
        super().__init__()
        self.log_stiffness = nn.Parameter(torch.tensor(guess).log())

    @property
    def stiffness(self):
        return self.log_stiffness.exp()


def derivatives(model, x):
    """Slope and curvature of the deflection at the points x."""
    x = x.detach().clone().requires_grad_(True)
    w = model(x)
    slope = torch.autograd.grad(w.sum(), x, create_graph=True)[0]
    curvature = torch.autograd.grad(slope.sum(), x, retain_graph=True)[0]
    return slope, curvature


def bending_loss(model, beam, x):
    _, curvature = derivatives(model, x)
    residual = beam.stiffness * curvature + bending_moment(x)
    return (residual / bending_moment(torch.tensor(0.5))).pow(2).mean()


def tilt_loss(model, x, readings):
    slope, _ = derivatives(model, x)
    return (slope - readings).pow(2).mean()


def ends_loss(model):
    return model(torch.tensor([[0.0], [1.0]])).pow(2).mean()


torch.manual_seed(3)
gauge_x = torch.tensor([[0.15], [0.35], [0.6], [0.8]])
gauge_w = exact_deflection(gauge_x) + 0.004 * torch.randn(4, 1)
tilt_x = torch.tensor([[0.05], [0.9]])
tilt_s = exact_slope(tilt_x) + 0.02 * torch.randn(2, 1)

model, beam = Deflection(), Beam()
optimizer = torch.optim.Adam(
    [
        {"params": model.parameters(), "lr": 5e-3},
        {"params": beam.parameters(), "lr": 1e-2},
    ]
)

for step in range(STEPS):
    points = torch.rand(48, 1)
    bend = bending_loss(model, beam, points)
    tilt = tilt_loss(model, tilt_x, tilt_s)
    gauges = (model(gauge_x) - gauge_w).pow(2).mean()
    ends = ends_loss(model)
    loss = 10.0 * gauges + W_BEND * bend + W_TILT * tilt + W_ENDS * ends

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    if (step + 1) % 50 == 0:
        print(
            f"step {step + 1:4d}  gauges {gauges.item():.2e}  tilt {tilt.item():.2e}  "
            f"bending {bend.item():.2e}  EI {beam.stiffness.item():.4f}"
        )

grid = torch.linspace(0.0, 1.0, 101).unsqueeze(1)
final_bending = bending_loss(model, beam, grid).item()
with torch.no_grad():
    error = (model(grid) - exact_deflection(grid)).abs().max().item()
print(f"stiffness {beam.stiffness.item():.4f} (true {STIFFNESS}), largest error of the deflection {error:.4f}")
print(f"bending residual on the grid {final_bending:.2e}")
