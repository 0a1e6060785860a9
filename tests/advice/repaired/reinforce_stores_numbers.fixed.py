"""expect: element-does-not-require-grad

A policy gradient whose log-probabilities are stored as Python numbers.
"""

import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 8)  # role: leaf_made_here
        self.head = nn.Linear(8, 2)  # role: leaf_made_here
        self.memory = []

    def act(self, observation):
        choice = Categorical(logits=self.head(torch.relu(self.body(observation))))
        action = choice.sample()
        self.memory.append(choice.log_prob(action))  # role: graph_cut_here
        return action.item()


def episode(policy, length=5):
    observation, rewards = torch.ones(3), []
    for _ in range(length):
        action = policy.act(observation)
        observation = observation + (0.1 if action else -0.1)
        rewards.append(float(action))
    return rewards


def returns_of(rewards, discount=0.9):
    total, out = 0.0, []
    for reward in reversed(rewards):
        total = reward + discount * total
        out.insert(0, total)
    return torch.tensor(out)


torch.manual_seed(22)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
returns = returns_of(episode(policy))
log_probs = torch.stack(policy.memory)
loss = -(log_probs * (returns - returns.mean())).sum()
optimizer.zero_grad()
loss.backward()  # role: needed_here
optimizer.step()
