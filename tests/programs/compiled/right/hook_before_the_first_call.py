"""The hook is there when the first call compiles."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
step = torch.compile(model, backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, target = torch.randn(32, 6), torch.randn(32, 1)
model[2].register_full_backward_hook(lambda module, inputs, outputs: tuple(each / 2 for each in inputs))
for _ in range(3):
    optimizer.zero_grad()
    nn.functional.mse_loss(step(data), target).backward()
    optimizer.step()
