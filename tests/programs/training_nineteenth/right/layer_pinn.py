"""Self-adaptive physics-informed network for a reaction-diffusion front (residual weights play against the net)."""
import math
import torch
import torch.nn as nn

torch.manual_seed(6)

D = 0.02
N_POINTS = 256
STEPS = 700


class Trial(nn.Module):
    """u(x) = lift(x) + x (1 - x) N(x), so both end values hold exactly."""

    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.register_buffer("left", torch.tensor(1.0))
        self.register_buffer("right", torch.tensor(0.0))

    def forward(self, x):
        lift = self.left + (self.right - self.left) * x
        return lift + x * (1.0 - x) * self.net(2.0 * x - 1.0)


def exact(x):
    """D u'' = u, u(0) = 1, u(1) = 0."""
    k = 1.0 / math.sqrt(D)
    return torch.sinh(k * (1.0 - x)) / math.sinh(k)


def residual(trial, x):
    x = x.detach().requires_grad_()
    u = trial(x)
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    d2u = torch.autograd.grad(du.sum(), x, create_graph=True)[0]
    return D * d2u - u


def train(adaptive):
    torch.manual_seed(6)
    trial = Trial()
    points = torch.linspace(0.0, 1.0, N_POINTS).unsqueeze(1)
    gate = nn.Parameter(torch.zeros(N_POINTS, 1), requires_grad=adaptive)

    net_opt = torch.optim.Adam(trial.parameters(), lr=4e-3)
    gate_opt = torch.optim.Adam([gate], lr=2e-2, maximize=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(net_opt, STEPS)

    for step in range(1, STEPS + 1):
        weight = 2.0 * torch.sigmoid(gate)  # bounded, so that the ascent ends
        res = residual(trial, points)
        loss = (weight * res.pow(2)).mean()
        net_opt.zero_grad()
        gate_opt.zero_grad()
        loss.backward()
        net_opt.step()
        gate_opt.step()
        sched.step()
        if step % 350 == 0:
            print(f"  step {step:4d}  weighted residual {loss.item():.2e}  "
                  f"weights {weight.min().item():.2f} to {weight.max().item():.2f}")
    return trial.requires_grad_(False), gate.detach()


grid = torch.linspace(0.0, 1.0, 401).unsqueeze(1)
errors = {}
for mode in (False, True):
    print("self-adaptive" if mode else "uniform")
    trial, gate = train(mode)
    errors[mode] = (trial(grid) - exact(grid)).pow(2).mean().sqrt().item()
    worst = residual(trial, grid).abs().max().item()
    print(f"  error {errors[mode]:.2e}  worst residual {worst:.2e}")
print(f"RMSE uniform {errors[False]:.2e}, self-adaptive {errors[True]:.2e}")
