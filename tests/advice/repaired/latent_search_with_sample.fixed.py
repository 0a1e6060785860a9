"""expect: element-does-not-require-grad

The latents of a frozen decoder are searched for, through draws that carry no gradient.
"""

import torch
from torch import nn
from torch.distributions import Independent, Normal


class Posterior:
    def __init__(self, size):
        self.mean = torch.zeros(size, requires_grad=True)  # role: leaf_made_here
        self.log_scale = torch.full((size,), -1.0, requires_grad=True)  # role: leaf_made_here

    def distribution(self):
        return Independent(Normal(self.mean, self.log_scale.exp()), 1)

    def draw(self, count):
        return self.distribution().rsample((count,))  # role: graph_cut_here

    def parameters(self):
        return [self.mean, self.log_scale]


torch.manual_seed(21)
decoder = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 6)).requires_grad_(False)
observed = torch.randn(6)
posterior = Posterior(4)
optimizer = torch.optim.Adam(posterior.parameters(), lr=0.05)
for step in range(3):
    pictures = decoder(posterior.draw(5))
    misfit = (pictures - observed).pow(2).sum(-1).mean()
    optimizer.zero_grad()
    misfit.backward()  # role: needed_here
    optimizer.step()
