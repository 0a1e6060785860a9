"""expect: view-of-leaf-modified-inplace

Views of parameters are kept in a table, and one of them is written much later.
"""

import torch
from torch import nn


class Kernel(nn.Module):
    def __init__(self, size=3):
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(size, size))  # role: leaf_made_here
        self.scale = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return (x * self.scale) @ self.matrix


def flat_views(module):
    return {name: p.view(-1) for name, p in module.named_parameters()}  # role: view_made_here


def weaken(views, names, factor):
    for name in names:
        views[name].mul_(factor)  # role: rejected_here


torch.manual_seed(38)
kernel = Kernel()
views = flat_views(kernel)
print({name: view.numel() for name, view in views.items()})
out = kernel(torch.randn(2, 3))
out.sum().backward()
with torch.no_grad():
    weaken(views, ["matrix"], 0.9)
