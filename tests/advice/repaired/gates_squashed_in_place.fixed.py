"""expect: multi-output-view-modified-inplace

A gated cell saves memory by squashing its gates in place, on the chunks of one projection.
"""

import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.project = nn.Linear(inputs + hidden, 3 * hidden)

    def gates(self, x, h):
        return self.project(torch.cat([x, h], dim=-1)).chunk(3, dim=-1)  # role: view_made_here

    def forward(self, x, state):
        h, c = state
        keep, write, show = self.gates(x, h)
        keep, show = keep.sigmoid(), show.sigmoid()  # role: modified_here
        c = keep * c + (1 - keep) * torch.tanh(write)
        return show * c, c


torch.manual_seed(42)
cell = Cell(3, 4)
state = (torch.zeros(2, 4), torch.zeros(2, 4))
for x in torch.randn(3, 2, 3):
    state = cell(x, state)
state[0].sum().backward()
