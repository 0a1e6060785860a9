"""expect: backward-through-freed-graph

A recurrent net that carries its state from one batch to the next, with its graph.
"""

import torch
from torch import nn


class Stateful(nn.Module):
    def __init__(self, inputs=2, hidden=5):
        super().__init__()
        self.enter = nn.Linear(inputs, hidden)
        self.again = nn.Linear(hidden, hidden, bias=False)
        self.leave = nn.Linear(hidden, 1)
        self.state = torch.zeros(1, hidden)

    def forward(self, x):
        outputs, self.state = [], self.state.detach()
        for row in x:
            mixed = self.enter(row) + self.again(self.state)
            self.state = torch.tanh(mixed)  # role: graph_built_here
            outputs.append(self.leave(self.state))
        return torch.stack(outputs)


def windows(series, length):
    for start in range(0, len(series) - length, length):
        yield series[start : start + length], series[start + 1 : start + length + 1, :, :1]


torch.manual_seed(30)
model = Stateful()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in windows(torch.randn(10, 1, 2), 3):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # role: freed_here, needed_here
