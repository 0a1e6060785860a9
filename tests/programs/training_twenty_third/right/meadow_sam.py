"""Exercise sheet 6, "own optimizers": sharpness-aware minimization on two noisy half moons with wrong labels."""
import argparse
import math

import torch
from torch import nn
import torch.nn.functional as F


class SAM(torch.optim.Optimizer):
    """Foret et al. 2021. Call ascend() after the first backward, descend() after the second one."""

    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def ascend(self):
        grads = [p.grad.norm() for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack(grads).norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["home"] = p.detach().clone()
                p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.copy_(self.state[p]["home"])
        self.base.step()
        self.zero_grad()

    def step(self, closure=None):
        raise RuntimeError("use ascend() and descend()")


def half_moons(n, generator, noise=0.25, wrong_labels=0.0):
    y = torch.randint(0, 2, (n,), generator=generator)
    t = torch.rand(n, generator=generator) * math.pi
    upper = torch.stack([torch.cos(t), torch.sin(t)], 1)
    lower = torch.stack([1 - torch.cos(t), 0.5 - torch.sin(t)], 1)
    x = torch.where(y[:, None] == 0, upper, lower) + noise * torch.randn(n, 2, generator=generator)
    flip = torch.rand(n, generator=generator) < wrong_labels
    return x, torch.where(flip, 1 - y, y)


def mlp(width):
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rho", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--width", type=int, default=64)
    args = parser.parse_args([])

    torch.manual_seed(31)
    g = torch.Generator().manual_seed(32)
    x, y = half_moons(400, g, wrong_labels=0.15)
    x_test, y_test = half_moons(1000, g)
    net = mlp(args.width)
    opt = SAM(net.parameters(), torch.optim.SGD, rho=args.rho, lr=args.lr, momentum=0.9)
    for epoch in range(1, args.epochs + 1):
        total = 0.0
        for idx in torch.randperm(len(x), generator=g).split(40):
            loss = F.cross_entropy(net(x[idx]), y[idx])
            loss.backward()
            opt.ascend()
            F.cross_entropy(net(x[idx]), y[idx]).backward()
            opt.descend()
            total += loss.item() * len(idx)
        if epoch % 10 == 0:
            with torch.no_grad():
                acc = (net(x_test).argmax(1) == y_test).float().mean().item()
            print(f"epoch {epoch}  train loss {total / len(x):.3f}  clean test accuracy {acc:.3f}")
    return net, opt, x, y


if __name__ == "__main__":
    net, opt, x, y = main()
