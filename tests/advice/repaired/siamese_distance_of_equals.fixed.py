"""expect: anomaly-nan

A distance is taken as the root of a sum of squares; once, a pair of equal images is drawn.
"""

import torch
from torch import nn


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, first, second):
        gap = self.embed(first) - self.embed(second)
        squared = gap.square().sum(dim=1)  # role: value_made_here
        return (squared + 1e-12).sqrt()  # role: graph_built_here


def contrastive(distance, same):
    far = (1.0 - distance).clamp(min=0)
    return torch.where(same, distance, far).square().mean()


torch.manual_seed(1)
torch.autograd.set_detect_anomaly(True)  # role: mode_entered_here
model = Siamese()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
same = torch.tensor([True, False, True])
for step in range(4):
    first = torch.randn(3, 4)
    second = torch.randn(3, 4)
    if step == 2:
        second[0] = first[0]
    loss = contrastive(model(first, second), same)
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
