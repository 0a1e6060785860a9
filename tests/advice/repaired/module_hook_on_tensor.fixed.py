# expect: hook-wrong-arity
"""A lambda written for modules is put on a tensor, in a loop, among others that fit."""
import torch
from torch import nn

norms = []
layer = nn.Linear(3, 3)
hooks = {
    "keep": lambda gradient: norms.append(gradient.norm()),
    "scale": lambda gradient: gradient * 0.1,  # role: function_defined_here
}
torch.manual_seed(0)
batch = torch.randn(2, 3)
out = layer(batch)
for name, hook in hooks.items():
    out.register_hook(hook)  # role: hook_registered_here

# the hooks run in the order in which they were registered
loss = out.square().sum()
loss.backward()  # role: needed_here
print([norm.item() for norm in norms])
