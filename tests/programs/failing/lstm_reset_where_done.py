"""expect: saved-tensor-modified-inplace

A recurrent policy forgets where an episode is over, by writing into the state that the head has read.
"""

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, observations=3, hidden=6, actions=2):
        super().__init__()
        self.cell = nn.LSTMCell(observations, hidden)
        self.head = nn.Linear(hidden, actions)

    def forward(self, observation, state):
        h, c = self.cell(observation, state)
        logits = self.head(h)  # role: saved_here
        return logits, (h, c)


def forget(state, done):
    for part in state:
        part[done] = 0.0  # role: modified_here


def rollout(policy, observations, dones):
    state = (torch.zeros(4, 6), torch.zeros(4, 6))
    for observation, done in zip(observations, dones):
        logits, state = policy(observation, state)
        yield torch.distributions.Categorical(logits=logits)
        forget(state, done)


torch.manual_seed(11)
policy = Policy()
optimizer = torch.optim.RMSprop(policy.parameters())
observations = torch.randn(3, 4, 3)
dones = torch.tensor([[True, False, False, False]] * 3)
entropy = torch.stack([d.entropy().mean() for d in rollout(policy, observations, dones)])
loss = -entropy.sum()
optimizer.zero_grad()
loss.backward()  # role: needed_here
optimizer.step()
