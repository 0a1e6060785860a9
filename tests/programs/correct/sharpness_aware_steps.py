"""Sharpness-aware minimisation: climb by hand along the gradient, take a second gradient there, go back, step."""

import torch
from torch import nn

torch.manual_seed(10)
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
inputs, goals = torch.randn(16, 4), torch.randn(16, 1)
for step in range(3):
    loss = nn.functional.mse_loss(model(inputs), goals)
    loss.backward()
    norm = torch.norm(torch.stack([p.grad.norm() for p in model.parameters()]))
    climbs = []
    with torch.no_grad():
        for p in model.parameters():
            climb = p.grad * (0.05 / norm)
            p.add_(climb)
            climbs.append(climb)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), goals).backward()
    with torch.no_grad():
        for p, climb in zip(model.parameters(), climbs):
            p.sub_(climb)
    optimizer.step()
    optimizer.zero_grad()
    print(step, round(loss.item(), 4))
