"""A critic with a gradient penalty on real data every second step, several backward passes before one step."""

import torch
from torch import nn

torch.manual_seed(8)
critic = nn.Sequential(nn.Linear(2, 8), nn.Softplus(), nn.Linear(8, 1))
generator = nn.Linear(3, 2)
optimizer_c = torch.optim.Adam(critic.parameters(), lr=1e-3, foreach=True)
optimizer_g = torch.optim.RMSprop(generator.parameters(), lr=1e-3)

for step in range(4):
    for parameter in critic.parameters():
        parameter.requires_grad_(True)
    real = torch.randn(8, 2)
    with torch.no_grad():
        fake = generator(torch.randn(8, 3))
    optimizer_c.zero_grad()
    nn.functional.softplus(critic(fake)).mean().backward()
    nn.functional.softplus(-critic(real)).mean().backward()
    if step % 2 == 0:
        real.requires_grad_()
        (slope,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
        penalty = 5.0 * slope.pow(2).sum(1).mean()
        penalty.backward()
    optimizer_c.step()

    for parameter in critic.parameters():
        parameter.requires_grad_(False)
    optimizer_g.zero_grad()
    loss = nn.functional.softplus(-critic(generator(torch.randn(8, 3)))).mean()
    loss.backward()
    optimizer_g.step()
    print(step, round(loss.item(), 3))
