"""Deep equilibrium classifier for the two-spirals toy set, moved over from my JAX code.

There it was a custom_vjp with an inner solver; here the implicit gradient is a hook.
"""
import math

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(31)

HIDDEN, BATCH, STEPS = 40, 128, 260
MAX_ITER, TOL = 25, 1e-4


def spirals(n, noise=0.04):
    label = torch.randint(0, 2, (n,))
    r = torch.rand(n).sqrt()
    angle = 2.6 * math.pi * r + math.pi * label
    xy = torch.stack([r * angle.cos(), r * angle.sin()], dim=1)
    return 2.0 * (xy + noise * torch.randn(n, 2)), label


def fixed_point(f, start):
    """Plain iteration until the relative change is small; returns the point and the number of steps."""
    z = start
    for k in range(MAX_ITER):
        nxt = f(z)
        change = (nxt - z).norm() / (nxt.norm() + 1e-8)
        z = nxt
        if change < TOL:
            break
    return z, k + 1


class Cell(nn.Module):
    """z -> tanh(W z + U x + b), with W scaled so that the map is a contraction."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(HIDDEN, HIDDEN) / HIDDEN ** 0.5)
        self.inject = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, z, x):
        norm = torch.linalg.matrix_norm(self.weight, ord="fro")
        w = self.weight * (0.8 / norm.clamp(min=0.8))
        return torch.tanh(z @ w.t() + self.inject(x))


class EquilibriumNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(2, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU())
        self.cell = Cell()
        self.head = nn.Linear(HIDDEN, 2)
        self.forward_steps = self.backward_steps = 0

    def forward(self, points):
        x = self.embed(points)
        with torch.no_grad():
            z, self.forward_steps = fixed_point(lambda z: self.cell(z, x), torch.zeros_like(x))

        # one more application, this time on the tape
        z_out = self.cell(z, x)

        if torch.is_grad_enabled():
            z0 = z.clone().requires_grad_()
            f0 = self.cell(z0, x.detach())

            def implicit_gradient(grad):
                solve = lambda g: torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
                g, self.backward_steps = fixed_point(solve, grad)
                return g

            z_out.register_hook(implicit_gradient)
        return self.head(z_out)


def check_implicit_gradient(model, points, label):
    """Compares the hook's gradient with backprop through a long unrolled iteration."""
    w = model.cell.weight
    implicit, = torch.autograd.grad(F.cross_entropy(model(points), label), w)
    x = model.embed(points)
    z = torch.zeros_like(x)
    for _ in range(2 * MAX_ITER):
        z = model.cell(z, x)
    unrolled, = torch.autograd.grad(F.cross_entropy(model.head(z), label), w)
    return ((implicit - unrolled).norm() / unrolled.norm()).item()


test_x, test_y = spirals(500)
model = EquilibriumNet()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
print(f"implicit against unrolled gradient at the start: {check_implicit_gradient(model, test_x, test_y):.1e}")

for step in range(STEPS):
    points, label = spirals(BATCH)
    loss = F.cross_entropy(model(points), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 65 == 0 or step == STEPS - 1:
        fw, bw = model.forward_steps, model.backward_steps
        with torch.no_grad():
            acc = (model(test_x).argmax(1) == test_y).float().mean().item()
        print(f"step {step:3d}  loss {loss.item():.4f}  test accuracy {acc:.3f}  solver steps {fw}/{bw}")

print(f"implicit against unrolled gradient at the end: {check_implicit_gradient(model, test_x, test_y):.1e}")
