"""A hook of the module that `torch.compile` returned runs outside the compiled code, whenever it is registered."""

import torch
from torch import nn

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
fast = torch.compile(model, backend="eager")
data, labels = torch.randn(16, 4), torch.randint(3, (16,))
nn.functional.cross_entropy(fast(data), labels).backward()
model.zero_grad()
fast.register_forward_hook(lambda module, inputs, logits: logits / 2.0)
nn.functional.cross_entropy(fast(data), labels).backward()
