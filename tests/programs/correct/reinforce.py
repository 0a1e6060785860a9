"""A policy gradient with stored log-probabilities and a running baseline of plain numbers."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(7)
policy = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
baseline = 0.0
for _ in range(3):
    observation, log_probs, rewards = torch.zeros(3), [], []
    for _ in range(5):
        choice = Categorical(logits=policy(observation))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        observation = observation + 0.1 * (2 * action.item() - 1)
        rewards.append(float(action))
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(log_probs) * (returns - baseline)).sum()
    baseline = 0.9 * baseline + 0.1 * returns.mean().item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
