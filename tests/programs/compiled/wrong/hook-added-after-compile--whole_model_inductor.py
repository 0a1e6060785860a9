"""The output of the whole model is tempered by a hook that is registered after a first evaluation."""

import torch
from torch import nn

torch.manual_seed(4)
model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 4))
fast = torch.compile(model)  # role: compiled_here
data, labels = torch.randn(16, 3), torch.randint(4, (16,))
nn.functional.cross_entropy(fast(data), labels).backward()  # role: called_here
model.zero_grad()
model.register_forward_hook(lambda module, inputs, logits: logits / 4.0)  # role: hook_registered_here
nn.functional.cross_entropy(fast(data), labels).backward()  # role: needed_here
