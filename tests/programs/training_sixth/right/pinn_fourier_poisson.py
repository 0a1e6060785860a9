"""Physics-informed network for a 1D Poisson problem: fixed Fourier features, Adam first and L-BFGS afterwards."""
import math

import torch
import torch.nn as nn


def source(x):
    return (2 * math.pi) ** 2 * torch.sin(2 * math.pi * x) + 0.5 * (4 * math.pi) ** 2 * torch.sin(4 * math.pi * x)


def exact(x):
    return torch.sin(2 * math.pi * x) + 0.5 * torch.sin(4 * math.pi * x)


class FourierNet(nn.Module):
    def __init__(self, features=12, hidden=24, scale=1.0):
        super().__init__()
        self.register_buffer("freq", torch.randn(1, features) * scale * 2 * math.pi)
        self.body = nn.Sequential(
            nn.Linear(2 * features, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.out = nn.Linear(hidden, 1, bias=False)

    def forward(self, x):
        angle = x @ self.freq
        raw = self.out(self.body(torch.cat([angle.sin(), angle.cos()], dim=1)))
        return x * (1 - x) * raw


class PoissonLoss:
    def __init__(self, net, points):
        self.net = net
        self.x = points.clone().requires_grad_(True)
        self.f = source(points)
        self.adaptive = True

    def __call__(self):
        u = self.net(self.x)
        (u_x,) = torch.autograd.grad(u.sum(), self.x, create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x.sum(), self.x, create_graph=True)
        residual = (u_xx + self.f) / (4 * math.pi) ** 2
        if not self.adaptive:
            return (residual ** 2).mean()
        with torch.no_grad():
            weight = 0.5 + 0.5 * residual.abs() / residual.abs().mean()
        return (weight * residual ** 2).mean()


def relative_error(net):
    grid = torch.linspace(0, 1, 201).unsqueeze(1)
    with torch.no_grad():
        return ((net(grid) - exact(grid)).norm() / exact(grid).norm()).item()


def main():
    torch.manual_seed(10)
    net = FourierNet()
    objective = PoissonLoss(net, torch.linspace(0, 1, 64).unsqueeze(1))

    params = list(net.parameters())
    adam = torch.optim.Adam(params, lr=3e-3)
    for step in range(200):
        loss = objective()
        adam.zero_grad()
        loss.backward(inputs=params)
        adam.step()
    print(f"adam loss {loss.item():.5f} error {relative_error(net):.4f}")

    lbfgs = torch.optim.LBFGS(params, lr=1.0, max_iter=10, history_size=20, line_search_fn="strong_wolfe")
    objective.adaptive = False

    def closure():
        lbfgs.zero_grad()
        loss = objective()
        loss.backward(inputs=params)
        return loss

    for outer in range(6):
        loss = lbfgs.step(closure)
        print(f"lbfgs {outer} loss {loss.item():.6f} error {relative_error(net):.4f}")


if __name__ == "__main__":
    main()
