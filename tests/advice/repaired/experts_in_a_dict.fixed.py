"""expect: optimizer-empty-parameter-list

The experts of a mixture stand in a plain dictionary, where `parameters()` finds none of them.
"""

import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, width, names):
        super().__init__()
        self.names = names
        self.experts = nn.ModuleDict({name: self.expert(width) for name in names})

    @staticmethod
    def expert(width):
        return nn.Linear(width, 1)  # role: value_made_here

    def forward(self, x, name):
        return self.experts[name](x)


def configured(model, learning_rate):
    trainable = (parameter for parameter in model.parameters() if parameter.requires_grad)
    return torch.optim.AdamW(list(trainable) or model.parameters(), lr=learning_rate)  # role: optimizer_made_here


torch.manual_seed(2)
model = Mixture(3, ["left", "right"])
optimizer = configured(model, 1e-3)
for name in model.names:
    loss = model(torch.randn(4, 3), name).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
