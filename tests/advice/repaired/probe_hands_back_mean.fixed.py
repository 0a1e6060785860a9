# expect: hook-changed-size
"""A probe object averages the gradients of activations over the batch, and hands the average back."""
import torch
from torch import nn

torch.manual_seed(0)


class Probe:
    def __init__(self):
        self.seen = []

    def __call__(self, gradient):
        mean = gradient.mean(dim=0)
        self.seen.append(mean.norm().item())


class Encoder(nn.Module):
    def __init__(self, probe):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 2)
        self.probe = probe

    def forward(self, x):
        hidden = self.first(x).relu()
        hidden.register_hook(self.probe)  # role: hook_registered_here
        return self.second(hidden)


encoder = Encoder(Probe())
batch = torch.randn(8, 4)
loss = encoder(batch).square().sum()
loss.backward()  # role: needed_here
