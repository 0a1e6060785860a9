"""An actor-critic with one backward pass for the sum of its losses."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(5)
trunk = nn.Sequential(nn.Linear(4, 16), nn.Tanh())
policy, value = nn.Linear(16, 2), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*trunk.parameters(), *policy.parameters(), *value.parameters()])
for _ in range(3):
    observation, returns = torch.randn(6, 4), torch.randn(6)
    features = trunk(observation)
    distribution, worth = Categorical(logits=policy(features)), value(features).squeeze(-1)
    action = distribution.sample()
    advantage = (returns - worth).detach()
    actor_loss = -(distribution.log_prob(action) * advantage).mean()
    critic_loss = (returns - worth).pow(2).mean()
    optimizer.zero_grad()
    (actor_loss + 0.5 * critic_loss - 0.01 * distribution.entropy().mean()).backward()
    optimizer.step()
print("done")
