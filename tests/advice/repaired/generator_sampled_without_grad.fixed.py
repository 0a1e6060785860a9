"""expect: element-does-not-require-grad

A generator is trained through the method that was written for showing samples.
"""

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, latent=3):
        super().__init__()
        self.latent = latent
        self.first = nn.Linear(latent, 8)  # role: leaf_made_here
        self.second = nn.Linear(8, 2)  # role: leaf_made_here

    def forward(self, z):
        h = torch.relu(self.first(z))  # role: graph_cut_here
        return self.second(h)

    def sample(self, count):
        return self(torch.randn(count, self.latent))


def frozen(module):
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


torch.manual_seed(20)
generator = Generator()
critic = frozen(nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)))
optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
for step in range(2):
    fake = generator.sample(8)
    loss = -critic(fake).mean()
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
