"""expect: saved-tensor-modified-inplace

Activations rescaled together with a foreach op after the layers used them.
"""

import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        outputs = []
        for layer in self.layers:
            x = torch.tanh(layer(x))  # role: saved_here
            outputs.append(x)
        return outputs


def normalise(tensors):
    norms = torch._foreach_norm(tensors)
    torch._foreach_div_(tensors, [n.detach() + 1e-6 for n in norms])  # role: modified_here
    return tensors


torch.manual_seed(1)
tower = Tower([3, 5, 4, 2])
optimizer = torch.optim.Adam(tower.parameters())
features = normalise(tower(torch.randn(6, 3)))
loss = sum(f.pow(2).sum() for f in features)
optimizer.zero_grad()
loss.backward()  # role: needed_here
optimizer.step()
