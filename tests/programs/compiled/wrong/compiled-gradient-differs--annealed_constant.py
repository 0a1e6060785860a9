"""The weight of a penalty is annealed, and read by a function that is marked as constant."""

import torch
from torch import nn

annealing = {"weight": 1.0}


@torch.compiler.assume_constant_result
def penalty_weight():
    return annealing["weight"]


torch.manual_seed(7)
model = nn.Linear(4, 1)
other = torch.compile(nn.Linear(4, 1), backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, target = torch.randn(16, 4), torch.randn(16, 1)
print(other(data).mean().item())


@torch.compile(backend="eager")  # role: compiled_here
def objective(x, y):  # role: function_defined_here
    return (model(x) - y).square().mean() + penalty_weight() * model.weight.square().sum()


for epoch in range(3):
    annealing["weight"] = 1.0 / (1 + epoch)
    optimizer.zero_grad()
    loss = objective(data, target)
    loss.backward()  # role: needed_here
    optimizer.step()
