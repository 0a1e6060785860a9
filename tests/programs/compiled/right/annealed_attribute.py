"""PyTorch checks the attribute of a module before each call: a new value is compiled again."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.temperature = 4.0

    def forward(self, x):
        return self.linear(x) / self.temperature


torch.manual_seed(5)
model = Scaled()
fast = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, labels = torch.randn(16, 4), torch.randint(2, (16,))
for _ in range(3):
    optimizer.zero_grad()
    nn.functional.cross_entropy(fast(data), labels).backward()
    optimizer.step()
    model.temperature *= 0.7
