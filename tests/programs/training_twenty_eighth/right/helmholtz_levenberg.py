"""Levenberg-Marquardt training of a small physics-informed net for a Helmholtz problem."""
import math

import torch
import torch.nn as nn
from torch.func import functional_call, grad, jacrev, vmap
from torch.nn.utils import parameters_to_vector, vector_to_parameters

WAVE = 6.0


def exact(x):
    return torch.sin(WAVE * x) + x * torch.cos(2.0 * x)


def source(x):
    second = -4.0 * torch.sin(2.0 * x) - 4.0 * x * torch.cos(2.0 * x) - WAVE ** 2 * torch.sin(WAVE * x)
    return second + WAVE ** 2 * exact(x)


def build_net(width=16):
    net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
    nn.init.normal_(net[0].weight, std=3.0)
    nn.init.uniform_(net[0].bias, -3.0, 3.0)
    return net.double().requires_grad_(False)


class ResidualSystem:
    """Weighted residuals of equation and boundary values as a function of the flat weights."""

    def __init__(self, net, points=64, boundary_weight=10.0):
        self.net = net
        self.shapes = {name: p.shape for name, p in net.named_parameters()}
        self.x = torch.linspace(0.0, 2.0, points, dtype=torch.float64)
        self.ends = torch.tensor([0.0, 2.0], dtype=torch.float64)
        self.boundary_weight = boundary_weight

    def unflatten(self, theta):
        pieces = theta.split([math.prod(shape) for shape in self.shapes.values()])
        return {name: piece.view(shape) for (name, shape), piece in zip(self.shapes.items(), pieces)}

    def solution(self, theta, x):
        return functional_call(self.net, self.unflatten(theta), (x.reshape(1, 1) - 1.0,)).squeeze()

    def residuals(self, theta):
        curvature = grad(grad(self.solution, argnums=1), argnums=1)
        u = vmap(self.solution, (None, 0))(theta, self.x)
        u_xx = vmap(curvature, (None, 0))(theta, self.x)
        interior = (u_xx + WAVE ** 2 * u - source(self.x)) / math.sqrt(len(self.x))
        ends = vmap(self.solution, (None, 0))(theta, self.ends) - exact(self.ends)
        return torch.cat([interior, self.boundary_weight * ends])


class LevenbergMarquardt:
    def __init__(self, system, damping=1.0, grow=3.0, shrink=0.4):
        self.system = system
        self.damping = damping
        self.grow = grow
        self.shrink = shrink
        self.jacobian = jacrev(system.residuals)

    @torch.no_grad()
    def step(self, theta, tries=6):
        r = self.system.residuals(theta)
        jac = self.jacobian(theta)
        loss = r.square().sum()
        normal, slope = jac.T @ jac, jac.T @ r
        for _ in range(tries):
            shifted = normal.clone()
            shifted.diagonal().add_(self.damping)
            trial = theta - torch.linalg.solve(shifted, slope)
            trial_loss = self.system.residuals(trial).square().sum()
            if trial_loss < loss:
                self.damping = max(self.damping * self.shrink, 1e-9)
                theta.copy_(trial)
                return trial_loss.item(), True
            self.damping *= self.grow
        return loss.item(), False


def relative_error(net):
    x = torch.linspace(0.0, 2.0, 301, dtype=torch.float64).unsqueeze(1)
    return ((net(x - 1.0) - exact(x)).norm() / exact(x).norm()).item()


def main(steps=60):
    torch.manual_seed(4)
    net = build_net()
    system = ResidualSystem(net)
    theta = parameters_to_vector(net.parameters())
    vector_to_parameters(theta, net.parameters())
    solver = LevenbergMarquardt(system)
    first = relative_error(net)
    for step in range(steps):
        loss, accepted = solver.step(theta)
        if step % 15 == 14:
            state = "accepted" if accepted else "rejected"
            print(f"step {step + 1:3d}  loss {loss:.3e}  damping {solver.damping:.1e}  {state}  error {relative_error(net):.5f}")
    last = relative_error(net)
    print(f"relative L2 error {first:.4f} -> {last:.6f}")
    return net, theta, first, last


if __name__ == "__main__":
    trained, weights, error_first, error_last = main()
