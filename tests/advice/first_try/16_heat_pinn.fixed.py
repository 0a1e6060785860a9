import math

import torch
import torch.nn as nn
from torch.autograd import Function


class LeanSwish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_out):
        x, = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_out * s * (1 + x * (1 - s))


class Swish(nn.Module):
    def forward(self, x):
        return LeanSwish.apply(x)


class HeatNet(nn.Module):
    def __init__(self, width=24, depth=3):
        super().__init__()
        dims = [2] + [width] * depth
        layers = []
        for a, b in zip(dims[:-1], dims[1:]):
            layers += [nn.Linear(a, b), Swish()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


def partial(u, wrt):
    return torch.autograd.grad(u, wrt, torch.ones_like(u), create_graph=True)[0]


class HeatProblem:
    def __init__(self, kappa=0.1):
        self.kappa = kappa

    def interior(self, net, n=128):
        x = torch.rand(n, 1, requires_grad=True)
        t = torch.rand(n, 1, requires_grad=True)
        u = net(x, t)
        u_t = partial(u, t)
        u_x = partial(u, x)
        u_xx = partial(u_x, x)
        return (u_t - self.kappa * u_xx).pow(2).mean()

    def initial(self, net, n=64):
        x = torch.rand(n, 1)
        return (net(x, torch.zeros_like(x)) - torch.sin(math.pi * x)).pow(2).mean()

    def walls(self, net, n=64):
        t = torch.rand(n, 1)
        return net(torch.zeros_like(t), t).pow(2).mean() + net(torch.ones_like(t), t).pow(2).mean()


def main():
    torch.manual_seed(16)
    net, problem = HeatNet(), HeatProblem()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for it in range(60):
        opt.zero_grad()
        pde, ic, bc = problem.interior(net), problem.initial(net), problem.walls(net)
        loss = pde + 5 * ic + 5 * bc
        loss.backward()
        opt.step()
        if it % 12 == 0:
            print(f"it {it:2d} pde {pde.item():.5f} ic {ic.item():.5f} bc {bc.item():.5f}")


if __name__ == "__main__":
    main()
