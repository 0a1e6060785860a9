"""expect: backward-through-freed-graph

A moving average of values, used as a baseline, is never detached.
"""

import torch
from torch import nn


class Baseline:
    def __init__(self, decay=0.9):
        self.decay = decay
        self.value = 0.0

    def update(self, values):
        self.value = self.decay * self.value + (1 - self.decay) * values.mean()  # role: graph_built_here
        value, self.value = self.value, self.value.detach()
        return value


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


torch.manual_seed(34)
critic, baseline = Critic(), Baseline()
optimizer = torch.optim.SGD(critic.parameters(), lr=0.05)
for update in range(3):
    observations, rewards = torch.randn(6, 3), torch.randn(6)
    values = critic(observations)
    centred = rewards - baseline.update(values)
    loss = (centred - values).square().mean()
    optimizer.zero_grad()
    loss.backward()  # role: freed_here, needed_here
