"""Proximal policy optimisation: rollouts kept in lists, advantages, several epochs of small batches over each rollout."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(9)
policy = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=3e-3, eps=1e-5)


def rollout(length):
    state = torch.randn(3)
    kept = {"state": [], "action": [], "old": [], "value": [], "reward": []}
    for _ in range(length):
        chances = Categorical(logits=policy(state))
        action = chances.sample()
        kept["state"].append(state)
        kept["action"].append(action)
        kept["old"].append(chances.log_prob(action))
        kept["value"].append(critic(state).squeeze(0))
        kept["reward"].append(1.0 if action.item() == int(state[0] > 0) else 0.0)
        state = 0.5 * state + torch.randn(3)
    return kept


def advantages(rewards, values, gamma=0.9, decay=0.9):
    found, running, following = [], 0.0, 0.0
    for reward, value in zip(reversed(rewards), reversed(values.tolist())):
        running = reward + gamma * following - value + gamma * decay * running
        found.append(running)
        following = value
    return torch.tensor(found[::-1])


scores = []
for update in range(4):
    kept = rollout(32)
    states, actions = torch.stack(kept["state"]), torch.stack(kept["action"])
    old, values = torch.stack(kept["old"]).detach(), torch.stack(kept["value"]).detach()
    gain = advantages(kept["reward"], values)
    goal = gain + values
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    for epoch in range(3):
        for rows in torch.randperm(32).split(8):
            chances = Categorical(logits=policy(states[rows]))
            ratio = (chances.log_prob(actions[rows]) - old[rows]).exp()
            clipped = ratio.clamp(0.8, 1.2)
            actor = -torch.min(ratio * gain[rows], clipped * gain[rows]).mean()
            value = nn.functional.mse_loss(critic(states[rows]).squeeze(1), goal[rows])
            loss = actor + 0.5 * value - 0.01 * chances.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
    scores.append(sum(kept["reward"]))
print(len(scores))
