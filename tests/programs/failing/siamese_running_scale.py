"""expect: saved-tensor-modified-inplace

A normalisation layer with a running scale, called twice before the backward pass.
"""

import torch
from torch import nn


class RunningScale(nn.Module):
    def __init__(self, width, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("scale", torch.ones(width))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        if self.training:
            self.track(x.detach())
        return x / self.scale  # role: saved_here

    def track(self, x):
        self.seen += 1
        self.scale.lerp_(x.std(0), self.momentum)  # role: modified_here


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), RunningScale(6))

    def forward(self, left, right):
        return (self.trunk(left) - self.trunk(right)).norm(dim=1)


torch.manual_seed(17)
model = Siamese()
left = torch.randn(7, 5)
distance = model(left, left + 0.1)
loss = distance.pow(2).mean()
loss.backward()  # role: needed_here
