"""Parametrised layers: their buffers are written in every forward pass, by their own rules."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

torch.manual_seed(20)
critic = nn.Sequential(
    spectral_norm(nn.Linear(3, 8)),
    nn.LeakyReLU(0.1),
    weight_norm(nn.Linear(8, 1)),
)
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(3):
    real, fake = torch.randn(4, 3), torch.rand(4, 3)
    loss = torch.relu(1 - critic(real)).mean() + torch.relu(1 + critic(fake)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
