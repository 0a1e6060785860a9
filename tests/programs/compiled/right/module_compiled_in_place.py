"""`module.compile()` in a generator and discriminator loop, with a layer that is replaced on the way."""

import torch
from torch import nn

torch.manual_seed(9)
maker = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
critic = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(), nn.Linear(8, 1))
maker.compile(backend="eager")
critic.compile(backend="eager")
optimizers = [torch.optim.Adam(each.parameters(), lr=0.01) for each in (maker, critic)]
real = torch.randn(16, 3)
for epoch in range(3):
    fake = maker(torch.randn(16, 2))
    optimizers[1].zero_grad()
    (critic(fake.detach()).mean() - critic(real).mean()).backward()
    optimizers[1].step()
    optimizers[0].zero_grad()
    (-critic(fake).mean()).backward()
    optimizers[0].step()
    if epoch == 0:
        critic[1] = nn.ReLU()
