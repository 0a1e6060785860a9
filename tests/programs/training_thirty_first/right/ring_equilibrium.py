"""Deep equilibrium classifier of points on three noisy rings.

The hidden state is the fixed point of one layer.  It is found without a graph; its gradient comes from the implicit
function theorem, with the linear system solved by the same iteration when the gradient arrives.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

HIDDEN = 24
STEPS = 100
BATCH = 96
TOLERANCE = 1e-5


def rings(count):
    label = torch.randint(0, 3, (count,))
    radius = 0.5 + 0.6 * label + 0.1 * torch.randn(count)
    angle = 2.0 * math.pi * torch.rand(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), label


def iterate(function, start, limit=60):
    """Fixed-point iteration of a contraction; returns the point and the number of evaluations."""
    point = start
    for count in range(1, limit + 1):
        following = function(point)
        change = (following - point).norm() / following.norm().clamp(min=1e-8)
        point = following
        if change < TOLERANCE:
            break
    return point, count


class EquilibriumLayer(nn.Module):
    """z = tanh(W z + U x + b), with the norm of W held below one."""

    def __init__(self, inputs, hidden, bound=0.8):
        super().__init__()
        self.recurrent = nn.Parameter(0.15 * torch.randn(hidden, hidden))
        self.inject = nn.Linear(inputs, hidden)
        self.bound = bound
        self.forward_count = self.backward_count = 0

    def contraction(self):
        size = torch.linalg.matrix_norm(self.recurrent)
        return self.recurrent * (self.bound / size.clamp(min=self.bound))

    def forward(self, x):
        weight, injected = self.contraction(), self.inject(x)

        def layer(z):
            return torch.tanh(F.linear(z, weight) + injected)

        with torch.no_grad():
            z, self.forward_count = iterate(layer, torch.zeros_like(injected))
        z = layer(z)

        if torch.is_grad_enabled():
            z0 = z.detach().requires_grad_()
            f0 = layer(z0)

            def solve(grad):
                def adjoint(g):
                    return torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad

                g, self.backward_count = iterate(adjoint, grad)
                return g

            z.register_hook(solve)
        return z


class RingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(2, 16), nn.ReLU())
        self.equilibrium = EquilibriumLayer(16, HIDDEN)
        self.head = nn.Linear(HIDDEN, 3)

    def forward(self, x):
        return self.head(self.equilibrium(self.embed(x)))


torch.manual_seed(13)
test_x, test_label = rings(600)
net = RingNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)

for step in range(STEPS):
    x, label = rings(BATCH)
    loss = F.cross_entropy(net(x), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 25 == 0:
        layer = net.equilibrium
        print(
            f"step {step + 1:4d}  loss {loss.item():.4f}  iterations {layer.forward_count} forward, "
            f"{layer.backward_count} backward"
        )

net.eval()
with torch.no_grad():
    accuracy = (net(test_x).argmax(dim=1) == test_label).float().mean().item()
print(f"accuracy on new points {accuracy:.3f}")
