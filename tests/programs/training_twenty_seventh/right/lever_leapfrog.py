"""Hamiltonian-style reversible network for lever readings: additive leapfrog layers, activations are not stored."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    features: int = 12
    half: int = 16
    depth: int = 4
    classes: int = 4
    step: float = 0.5
    lr: float = 5e-3
    epochs: int = 15
    batch: int = 64


class Force(nn.Module):
    def __init__(self, half):
        super().__init__()
        self.inp = nn.Linear(half, 2 * half)
        self.out = nn.Linear(2 * half, half)

    def forward(self, x):
        return self.out(torch.tanh(self.inp(x)))


class Leapfrog(nn.Module):
    """p' = p + h F(q);  q' = q + h G(p')"""

    def __init__(self, half, step):
        super().__init__()
        self.f, self.g, self.step = Force(half), Force(half), step

    def forward(self, q, p):
        p = p + self.step * self.f(q)
        q = q + self.step * self.g(p)
        return q, p

    @torch.no_grad()
    def inverse(self, q, p):
        q = q - self.step * self.g(p)
        return q, p - self.step * self.f(q)


class ReversibleRun(torch.autograd.Function):
    """Runs the whole stack without a graph and rebuilds every layer's input on the way back."""

    @staticmethod
    def forward(ctx, q, p, layers):
        for layer in layers:  # no graph is recorded in here
            q, p = layer(q, p)
        ctx.layers = layers
        ctx.save_for_backward(q.detach(), p.detach())
        return q, p

    @staticmethod
    def backward(ctx, dq, dp):
        q, p = ctx.saved_tensors
        for layer in reversed(ctx.layers):
            q, p = layer.inverse(q, p)
            q_in, p_in = q.detach().requires_grad_(), p.detach().requires_grad_()
            with torch.enable_grad():
                out = layer(q_in, p_in)
            # fills .grad of the layer's own weights as well
            torch.autograd.backward(out, (dq, dp))
            dq, dp = q_in.grad, p_in.grad
        return dq, dp, None


class LeverNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.stem = nn.Linear(cfg.features, 2 * cfg.half)
        self.layers = nn.ModuleList([Leapfrog(cfg.half, cfg.step) for _ in range(cfg.depth)])
        self.head = nn.Linear(2 * cfg.half, cfg.classes)

    def forward(self, x):
        q, p = self.stem(x).chunk(2, dim=-1)
        q, p = ReversibleRun.apply(q, p, self.layers)
        return self.head(torch.cat([q, p], dim=-1))


def make_readings(n, cfg, g):
    x = torch.randn(n, cfg.features, generator=g)
    torque = (x[:, :2] * x[:, 2:4]).sum(1)
    tilt = torch.sin(2 * x[:, 0]) + x[:, 1]
    return x, (torque > 0).long() * 2 + (tilt > 0).long()


cfg = Config()
torch.manual_seed(17)
g = torch.Generator().manual_seed(18)
x, y = make_readings(2048, cfg, g)
x_val, y_val = make_readings(1024, cfg, g)
model = LeverNet(cfg)
opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-2)
for epoch in range(cfg.epochs):
    for idx in torch.randperm(len(x), generator=g).split(cfg.batch):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            acc = (model(x_val).argmax(-1) == y_val).float().mean().item()
        print(f"epoch {epoch + 1:2d}  loss {loss.item():.4f}  val acc {acc:.3f}")
