"""The hook is registered late, and then everything is compiled again."""

import torch
import torch._dynamo
from torch import nn

torch.manual_seed(7)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
fast = torch.compile(model, backend="eager")
data = torch.randn(16, 4)
fast(data).mean().backward()
model.zero_grad()
model[0].register_forward_hook(lambda module, inputs, output: output * 2)
torch._dynamo.reset()
fast(data).mean().backward()
