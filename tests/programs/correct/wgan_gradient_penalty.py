"""A critic with a gradient penalty: double backward through create_graph=True."""

import torch
from torch import nn


def penalty(critic, real, fake):
    share = torch.rand(real.shape[0], 1)
    mixed = (share * real + (1 - share) * fake).requires_grad_(True)
    score = critic(mixed)
    (gradient,) = torch.autograd.grad(score.sum(), mixed, create_graph=True)
    return ((gradient.norm(2, dim=1) - 1) ** 2).mean()


torch.manual_seed(1)
critic = nn.Sequential(nn.Linear(2, 8), nn.Softplus(), nn.Linear(8, 1))
optimizer = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
for _ in range(3):
    real, fake = torch.randn(6, 2), torch.rand(6, 2)
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, real, fake)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print("done")
