# expect: hook-changed-type
"""Gradients are clipped by a partial whose helper computes in double precision."""
import functools
import torch
from torch import nn

torch.manual_seed(0)


def clipped(limit, gradient):
    if gradient.abs().max() < limit:
        return gradient
    scale = limit / gradient.double().norm()
    return (gradient.double() * scale).to(gradient.dtype)  # role: returned_here


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
for parameter in model.parameters():
    parameter.register_hook(functools.partial(clipped, 1e-3))  # role: hook_registered_here

data = torch.randn(16, 4)
target = torch.randn(16, 1)
for step in range(3):
    loss = (model(data) - target).square().mean()
    model.zero_grad()
    loss.backward()  # role: needed_here
