"""A GAN: detach() in the critic's step, a fresh critic pass in the generator's."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(3, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
for real in torch.randn(3, 8, 2):
    fake = generator(torch.randn(8, 3))
    opt_c.zero_grad()
    loss_c = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)
    loss_c.backward()
    opt_c.step()
    opt_g.zero_grad()
    loss_g = bce(critic(fake), ones)
    loss_g.backward()
    opt_g.step()
print("done", loss_c.item() > 0, loss_g.item() > 0)
