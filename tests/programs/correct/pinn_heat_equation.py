"""A network that solves the heat equation, trained by Adam and then by L-BFGS with a closure, with a learned constant."""

import torch
from torch import nn

torch.manual_seed(7)
net = nn.Sequential(nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 1))
conductivity = nn.Parameter(torch.tensor(0.5))
points = torch.rand(20, 2, requires_grad=True)
start = torch.cat([torch.rand(10, 1), torch.zeros(10, 1)], dim=1)


def residual():
    u = net(points)
    first = torch.autograd.grad(u.sum(), points, create_graph=True)[0]
    second = torch.autograd.grad(first[:, 0].sum(), points, create_graph=True)[0][:, 0]
    return (first[:, 1] - conductivity * second).pow(2).mean()


def objective():
    return residual() + (net(start) - torch.sin(torch.pi * start[:, :1])).pow(2).mean()


adam = torch.optim.Adam([*net.parameters(), conductivity], lr=1e-3)
for _ in range(3):
    adam.zero_grad()
    loss = objective()
    loss.backward()
    adam.step()

lbfgs = torch.optim.LBFGS([*net.parameters(), conductivity], max_iter=4, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    loss = objective()
    loss.backward()
    return loss


for _ in range(2):
    print(f"{lbfgs.step(closure).item():.4f}")
