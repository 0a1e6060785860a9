import math

import numpy as np
import torch
import torch.nn as nn


class PoissonNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inp = nn.Linear(1, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.inp(x).tanh_()
        h = self.mid(h).tanh_()
        return self.out(h)


class Collocation:
    def __init__(self, n, seed):
        self.rng = np.random.default_rng(seed)
        self.grid = np.zeros((n, 1), dtype=np.float32)
        self.points = torch.from_numpy(self.grid)
        self.resample()

    def resample(self):
        self.grid[:] = self.rng.uniform(0.0, 1.0, self.grid.shape)

    def __call__(self):
        return self.points.requires_grad_(True)


class LossBalancer:
    def __init__(self, params, rate=0.1):
        self.params, self.rate, self.weight = list(params), rate, torch.ones(())

    def norm(self, loss):
        grads = torch.autograd.grad(loss, self.params, retain_graph=True, allow_unused=True)
        return torch.stack([g.norm() for g in grads if g is not None]).norm()

    def update(self, pde, bc):
        target = self.norm(pde) / (self.norm(bc) + 1e-8)
        self.weight.mul_(1 - self.rate).add_(target.clamp(0.1, 100.0), alpha=self.rate)
        return self.weight


def residual(net, x):
    u = net(x)
    u_x, = torch.autograd.grad(u.sum(), x, create_graph=True)
    u_xx, = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_xx + math.pi ** 2 * torch.sin(math.pi * x.detach())


def main():
    torch.manual_seed(19)
    net = PoissonNet()
    points = Collocation(64, seed=19)
    balancer = LossBalancer(net.parameters())
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    ends = torch.tensor([[0.0], [1.0]])
    for it in range(80):
        pde = residual(net, points()).pow(2).mean()
        bc = net(ends).pow(2).mean()
        weight = balancer.update(pde, bc)
        loss = pde + weight * bc
        opt.zero_grad()
        loss.backward()
        opt.step()
        points.resample()
        if it % 16 == 0:
            print(f"it {it:2d} pde {pde.item():.4f} bc {bc.item():.5f} w {weight.item():.3f}")


if __name__ == "__main__":
    main()
