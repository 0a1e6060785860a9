"""A Q-network with a replay buffer and a target that follows softly under no_grad."""

import copy
import random

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(6)
random.seed(6)
online = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
replay = []


@torch.no_grad()
def act(state):
    return online(state).argmax().item() if random.random() > 0.2 else random.randrange(2)


state = torch.zeros(3)
for step in range(12):
    action = act(state)
    following = state + torch.randn(3) * 0.1
    replay.append((state, action, float(following.sum() > 0), following))
    state = following
    if len(replay) < 6:
        continue
    states, actions, rewards, followings = zip(*random.sample(replay, 6))
    q = online(torch.stack(states)).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
    with torch.no_grad():
        goal = torch.tensor(rewards) + 0.9 * target(torch.stack(followings)).max(1).values
    loss = F.smooth_l1_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), online.parameters()):
            slow.lerp_(fast, 0.05)
print("done")
