import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
features = torch.randn(64, 4)
targets = features.abs().sum(1)

for epoch in range(20):
    optimizer.zero_grad()
    predicted = model(features).squeeze(1) + 0.5
    loss = (torch.log(predicted) - torch.log(targets)).square().mean()
    loss.backward()
    optimizer.step()
