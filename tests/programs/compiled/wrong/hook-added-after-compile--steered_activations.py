"""Fine-tunes around a steering vector, which a forward hook adds to a hidden layer after a first evaluation."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 2))
fast = torch.compile(model, backend="eager")  # role: compiled_here
prompts, wanted = torch.randn(20, 4), torch.randn(20, 2)
before = fast(prompts).detach()  # role: called_here
vector = torch.randn(16)


def steer(module, inputs, output):
    return output + vector


def watch(module, inputs, output):
    widest.append(output.abs().max().item())


widest = []
model[2].register_forward_hook(watch)
model[2].register_forward_hook(steer)  # role: hook_registered_here
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(2):
    optimizer.zero_grad()
    (fast(prompts) - wanted).square().mean().backward()  # role: needed_here
    optimizer.step()
