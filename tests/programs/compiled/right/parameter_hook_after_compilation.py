"""Autograd itself calls the hook of a parameter: compiled code has no part in it."""

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
fast = torch.compile(model, backend="eager")
data = torch.randn(16, 4)
fast(data).mean().backward()
model.zero_grad()
model[0].weight.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
fast(data).mean().backward()
