"""expect: no-grad-view-modified-inplace

A window into the activations is taken without gradients and then written with them.
"""

import torch
from torch import nn


class Inpainter(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = nn.Conv1d(1, 2, 3, padding=1)
        self.after = nn.Conv1d(2, 1, 3, padding=1)
        self.fill = nn.Parameter(torch.zeros(2, 1))

    def window(self, features, start, length):
        return features[:, :, start : start + length]  # role: view_made_here

    def forward(self, x, start, length):
        features = self.before(x)  # role: base_made_here
        hole = self.window(features, start, length)
        hole.copy_(self.fill.expand_as(hole))  # role: modified_here
        return self.after(torch.relu(features))


torch.manual_seed(43)
model = Inpainter()
x = torch.randn(2, 1, 8)
loss = (model(x, 2, 3) - x).pow(2).mean()
loss.backward()
