"""Micro-batches accumulate on purpose, then one step; gradients are cleared once per step."""

import torch
from torch import nn

torch.manual_seed(17)
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
accumulate = 3
total = 0.0
for epoch in range(2):
    optimizer.zero_grad()
    for index, x in enumerate(torch.randn(6, 2, 4), start=1):
        loss = (model(x).squeeze(-1) - x.sum(-1)).pow(2).mean() / accumulate
        loss.backward()
        total += loss.item()
        if index % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
print(total > 0)
