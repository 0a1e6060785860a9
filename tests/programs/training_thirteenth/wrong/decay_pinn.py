"""Physics-informed network for a forced RC circuit, tau * v' = -v + sin(w t), v(0) = 1, no data inside the domain."""
import math

import torch
from torch import nn

torch.manual_seed(3)

TAU = 0.5
OMEGA = 3.0
T_END = 3.0
STEPS = 1500
N_COLLOCATION = 96


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


class VoltageNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1, width), Sine(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )
        nn.init.uniform_(self.body[0].weight, -3.0, 3.0)

    def forward(self, t):
        return self.body(2.0 * t / T_END - 1.0)


def exact(t):
    """Closed-form solution used for the final report only."""
    k = 1.0 / (1.0 + (OMEGA * TAU) ** 2)
    steady = k * (torch.sin(OMEGA * t) - OMEGA * TAU * torch.cos(OMEGA * t))
    return steady + (1.0 + k * OMEGA * TAU) * torch.exp(-t / TAU)


def time_derivative(v, t):
    # v is needed again in the residual, so the graph has to stay alive after this call
    (dv,) = torch.autograd.grad(v, t, grad_outputs=torch.ones_like(v), retain_graph=True)
    return dv


def residual(net, t):
    v = net(t)
    return TAU * time_derivative(v, t) + v - torch.sin(OMEGA * t)


def sample_times(n):
    """Stratified collocation points, one per cell."""
    edges = torch.arange(n, dtype=torch.float32)
    t = (edges + torch.rand(n)) / n * T_END
    return t.unsqueeze(1).requires_grad_(True)


def initial_loss(net):
    t0 = torch.zeros(1, 1)
    return (net(t0) - 1.0).pow(2).mean()


def evaluate(net, n=200):
    t = torch.linspace(0, T_END, n).unsqueeze(1)
    with torch.no_grad():
        error = net(t) - exact(t)
    return error.pow(2).mean().sqrt().item(), error.abs().max().item()


def main():
    net = VoltageNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS, eta_min=1e-5)

    for step in range(STEPS):
        t = sample_times(N_COLLOCATION)
        physics = residual(net, t).pow(2).mean()
        start = initial_loss(net)
        loss = physics + 10.0 * start
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 300 == 0 or step == STEPS - 1:
            print(f"step {step:5d}  physics {physics.item():.5f}  start {start.item():.6f}")

    rmse, worst = evaluate(net)
    print(f"rmse {rmse:.4f}  worst {worst:.4f}  (signal scale {1 / math.sqrt(1 + (OMEGA * TAU) ** 2):.3f})")
    return rmse


if __name__ == "__main__":
    final_rmse = main()
