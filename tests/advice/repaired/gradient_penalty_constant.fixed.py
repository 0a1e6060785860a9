"""expect: element-does-not-require-grad

A gradient penalty that gets its own backward pass, on a gradient that is a constant.
"""

import torch
from torch import nn


def interpolate(real, fake):
    share = torch.rand(real.shape[0], 1)
    mixed = share * real + (1 - share) * fake
    return mixed.requires_grad_(True)  # role: leaf_made_here


def slope(critic, points):
    scores = critic(points)
    (gradient,) = torch.autograd.grad(  # role: graph_cut_here
        outputs=scores,
        inputs=points,
        grad_outputs=torch.ones_like(scores),
        create_graph=True,
    )
    return gradient.norm(dim=1)


torch.manual_seed(24)
critic = nn.Sequential(
    nn.Linear(2, 8),  # role: leaf_made_here
    nn.Tanh(),
    nn.Linear(8, 1),  # role: leaf_made_here
)
optimizer = torch.optim.Adam(critic.parameters())
real, fake = torch.randn(6, 2), torch.randn(6, 2)
optimizer.zero_grad()
wasserstein = critic(fake).mean() - critic(real).mean()
wasserstein.backward()
penalty = 10 * (slope(critic, interpolate(real, fake)) - 1).pow(2).mean()
penalty.backward()  # role: needed_here
optimizer.step()
