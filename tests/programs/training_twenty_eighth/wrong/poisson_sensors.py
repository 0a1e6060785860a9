"""Physics-informed net for a Poisson problem with noisy sensors, the data weight set by gradient norms."""
import math

import torch
import torch.nn as nn

MODES = 3.0
SENSORS = 24


def exact(x):
    return torch.sin(MODES * math.pi * x) + 0.8 * x + 0.3


def forcing(x):
    return -((MODES * math.pi) ** 2) * torch.sin(MODES * math.pi * x)


class PINN(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.layers(2.0 * x - 1.0)


def residual_loss(net, x):
    x = x.requires_grad_()
    u = net(x)
    u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
    return (u_xx - forcing(x.detach())).pow(2).mean()


def data_loss(net, positions, values):
    return (net(positions) - values).pow(2).mean()


def sensor_readings(noise=0.03):
    positions = torch.rand(SENSORS, 1)
    return positions, exact(positions) + noise * torch.randn(SENSORS, 1)


class GradientBalance:
    """Gradient-norm weighting: weight = |dL_res/dw| / |dL_data/dw|, smoothed over updates."""

    def __init__(self, net, momentum=0.9, start=1.0, limit=2000.0):
        self.net = net
        self.momentum = momentum
        self.weight = start
        self.limit = limit

    def norm(self):
        return torch.cat([p.grad.flatten() for p in self.net.parameters() if p.grad is not None]).norm().item()

    def update(self, residual, data):
        residual.backward(retain_graph=True)
        residual_norm = self.norm()
        data.backward(retain_graph=True)
        data_norm = self.norm()
        ratio = min(residual_norm / data_norm, self.limit)
        self.weight = self.momentum * self.weight + (1.0 - self.momentum) * ratio


def relative_error(net, points=201):
    x = torch.linspace(0, 1, points).unsqueeze(1)
    with torch.no_grad():
        return ((net(x) - exact(x)).norm() / exact(x).norm()).item()


def train(net, sensors, steps, every=5, batch=64):
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.996)
    balance = GradientBalance(net)
    for step in range(steps):
        residual = residual_loss(net, torch.rand(batch, 1))
        data = data_loss(net, *sensors)
        if step % every == 0:
            optimizer.zero_grad()
            balance.update(residual, data)
        loss = residual + balance.weight * data
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(
                f"step {step + 1:4d}  residual {residual.item():10.4f}  data {data.item():.5f}"
                f"  weight {balance.weight:8.2f}  error {relative_error(net):.4f}"
            )
    return balance


def main(steps=400):
    torch.manual_seed(21)
    sensors = sensor_readings()
    net = PINN()
    balance = train(net, sensors, steps)
    error = relative_error(net)
    print(f"relative L2 error: {error:.4f}")
    return net, balance, error


if __name__ == "__main__":
    model, balancer, final_error = main()
