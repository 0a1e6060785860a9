"""expect: saved-tensor-modified-inplace

Micro-batch losses are summed into one tensor, and the optimizer steps while the sum still grows.
"""

import torch
from torch import nn

torch.manual_seed(16)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
criterion = nn.MSELoss()


def micro_batches(count):
    for _ in range(count):
        x = torch.randn(3, 4)
        yield x, x.sum(1, keepdim=True)


running = 0.0
for index, (x, y) in enumerate(micro_batches(6), start=1):
    prediction = model(x)  # role: saved_here
    running = running + criterion(prediction, y) / 2
    if index % 2 == 0:
        optimizer.zero_grad()
        running.backward(retain_graph=True)  # role: needed_here
        optimizer.step()  # role: modified_here
        running = 0.0
        print(index, "stepped")
