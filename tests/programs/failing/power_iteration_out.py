"""expect: saved-tensor-modified-inplace

A work space is handed to `out=` while the regulariser that read it waits for its backward pass.
"""

import torch
from torch import nn


class SpectralPenalty(nn.Module):
    """The Rayleigh quotient of a matrix at a vector that power iteration improves."""

    def __init__(self, size):
        super().__init__()
        vector = torch.randn(size)
        self.register_buffer("vector", vector / vector.norm())
        self.register_buffer("work", torch.zeros(size))

    def improve(self, matrix):
        with torch.no_grad():
            torch.mv(matrix.t() @ matrix, self.vector, out=self.work)
            torch.div(self.work, self.work.norm(), out=self.vector)  # role: modified_here

    def forward(self, matrix):
        image = matrix @ self.vector  # role: saved_here
        return image.pow(2).sum()


torch.manual_seed(10)
layer = nn.Linear(4, 4, bias=False)
penalty = SpectralPenalty(4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x = torch.randn(8, 4)
for epoch in range(3):
    regulariser = penalty(layer.weight)
    penalty.improve(layer.weight)
    loss = (layer(x) - x).pow(2).mean() + 0.01 * regulariser
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
