"""Physics informed network for u'' = -pi^2 sin(pi x), u(0) = u(1) = 0."""
import math

import torch
import torch.nn as nn

torch.manual_seed(5)


class Solution(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return self.layers(x)


def second_derivative(u_fn, x):
    x = x.clone().requires_grad_(True)
    u = u_fn(x)
    (u_x,) = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x, x, torch.ones_like(u_x), create_graph=True)
    return u_xx


u = Solution()
opt = torch.optim.Adam(u.parameters(), lr=5e-3)
x_in = torch.linspace(0, 1, 34)[1:-1].unsqueeze(1)
x_edge = torch.tensor([[0.0], [1.0]])
source = -(math.pi**2) * torch.sin(math.pi * x_in)

for step in range(200):
    interior = (second_derivative(u, x_in) - source).pow(2).mean()
    boundary = u(x_edge).pow(2).mean()
    loss = 0.05 * interior + boundary
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 49:
        print(f"step {step}: interior {interior.item():.4f} boundary {boundary.item():.6f}")

with torch.no_grad():
    error = (u(x_in) - torch.sin(math.pi * x_in)).abs().max()
print(f"max error {error:.4f}")
