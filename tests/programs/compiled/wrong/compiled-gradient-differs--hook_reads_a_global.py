"""A tensor hook inside the compiled code reads a scale that is changed before backward runs."""

import torch
from torch import nn

scale = {"value": 1.0}
torch.manual_seed(8)
first, second = nn.Linear(4, 8), nn.Linear(8, 1)
data = torch.randn(12, 4)


def loss_of(x):  # role: function_defined_here
    hidden = first(x)
    hidden.register_hook(lambda gradient: gradient * scale["value"])
    return second(hidden.tanh()).square().mean()


fast = torch.compile(loss_of, backend="aot_eager")  # role: compiled_here
loss = fast(data)
scale["value"] = 1.0 / loss.item()
loss.backward()  # role: needed_here
print(first.weight.grad.norm())
