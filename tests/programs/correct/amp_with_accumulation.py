"""Autocast on the CPU, with accumulation over micro-batches."""

import torch
from torch import nn

torch.manual_seed(18)
model = nn.Sequential(nn.Linear(4, 8), nn.SiLU(inplace=True), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for _ in range(2):
    optimizer.zero_grad(set_to_none=True)
    for _ in range(2):
        x, y = torch.randn(3, 4), torch.tensor([0, 1, 1])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y) / 2
        loss.backward()
    optimizer.step()
    schedule.step()
print(loss.dtype)
