"""expect: element-does-not-require-grad

Training through weights that are really cast to integers.
"""

import torch
from torch import nn
from torch.nn import functional as F


class QuantisedLinear(nn.Module):
    def __init__(self, inputs, outputs, bits=4):
        super().__init__()
        self.levels = 2 ** (bits - 1) - 1
        self.weight = nn.Parameter(torch.randn(outputs, inputs))  # role: leaf_made_here

    def quantise(self):
        scale = self.weight.detach().abs().max() / self.levels
        steps = self.weight / scale
        codes = steps + (steps.round() - steps).detach()  # role: graph_cut_here
        return codes.float() * scale

    def forward(self, x):
        return F.linear(x, self.quantise())


torch.manual_seed(27)
net = nn.Sequential(QuantisedLinear(4, 8), nn.ReLU(), QuantisedLinear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(5, 4), torch.tensor([0, 1, 1, 0, 1])
loss = F.cross_entropy(net(x), y)
optimizer.zero_grad()
loss.backward()  # role: needed_here
optimizer.step()
