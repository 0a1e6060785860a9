"""expect: backward-through-freed-graph

Actor and critic share a trunk, and each loss is differentiated by itself.
"""

import torch
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 16)
        self.policy = nn.Linear(16, 2)
        self.value = nn.Linear(16, 1)

    def forward(self, observation):
        features = torch.tanh(self.trunk(observation))  # role: graph_built_here
        return Categorical(logits=self.policy(features)), self.value(features).squeeze(-1)


def losses(model, observation, returns):
    distribution, value = model(observation)
    advantage = (returns - value).detach()
    log_prob = distribution.log_prob(torch.zeros(len(observation), dtype=torch.long))
    return -(log_prob * advantage).mean(), (returns - value).pow(2).mean()


torch.manual_seed(31)
model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters())
actor_loss, critic_loss = losses(model, torch.randn(6, 4), torch.randn(6))
optimizer.zero_grad()
actor_loss.backward(retain_graph=True)  # role: freed_here
critic_loss.backward()  # role: needed_here
optimizer.step()
