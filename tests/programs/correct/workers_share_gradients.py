"""Two workers compute gradients on copies of a model; the shared model takes their mean and is stepped."""

import copy

import torch
from torch import nn

torch.manual_seed(11)
shared = nn.Linear(3, 1)
optimizer = torch.optim.Adam(shared.parameters(), lr=1e-2)
workers = [copy.deepcopy(shared) for _ in range(2)]
for step in range(3):
    losses = []
    for worker in workers:
        worker.load_state_dict(shared.state_dict())
        worker.zero_grad()
        inputs = torch.randn(8, 3)
        loss = (worker(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        losses.append(loss.item())
    for parameter, *copies in zip(shared.parameters(), *(worker.parameters() for worker in workers)):
        parameter.grad = torch.stack([copied.grad for copied in copies]).mean(0)
    optimizer.step()
    print(step, [round(loss, 3) for loss in losses])
