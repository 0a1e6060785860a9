"""Double DQN on a chain environment with a hard-updated target network."""
import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class Chain:
    def __init__(self, n=8, horizon=24):
        self.n, self.horizon = n, horizon

    def reset(self):
        self.state, self.t = 0, 0
        return self.obs()

    def obs(self):
        return F.one_hot(torch.tensor(self.state), self.n).float()

    def step(self, action):
        self.t += 1
        self.state = min(self.state + 1, self.n - 1) if action == 1 else 0
        reward = 1.0 if self.state == self.n - 1 else (0.02 if action == 0 else 0.0)
        return self.obs(), reward, self.state == self.n - 1 or self.t >= self.horizon


class DuelingQ(nn.Module):
    def __init__(self, n, hidden=32, actions=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n, hidden), nn.ReLU())
        self.value = nn.Linear(hidden, 1)
        self.advantage = nn.Linear(hidden, actions)

    def forward(self, x):
        h = self.body(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(dim=-1, keepdim=True)


class DQN:
    def __init__(self, n, gamma=0.97, lr=2e-3, sync_every=50):
        self.online = DuelingQ(n)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.target.eval()
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.gamma, self.sync_every, self.updates = gamma, sync_every, 0

    def act(self, obs, eps):
        if random.random() < eps:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.online(obs).argmax())

    def update(self, batch):
        obs, action, reward, next_obs, done = batch
        q = self.online(obs).gather(1, action[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.online(next_obs).argmax(1, keepdim=True)
            bootstrap = self.target(next_obs).gather(1, best).squeeze(1)
            y = reward + self.gamma * (1 - done) * bootstrap
        loss = F.smooth_l1_loss(q, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.sync_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


def collate(samples):
    obs, action, reward, next_obs, done = zip(*samples)
    return (torch.stack(obs), torch.tensor(action), torch.tensor(reward),
            torch.stack(next_obs), torch.tensor(done, dtype=torch.float))


random.seed(0)
torch.manual_seed(0)
env, agent, buffer = Chain(), DQN(8), deque(maxlen=5000)
returns = []
for episode in range(120):
    obs, done, total = env.reset(), False, 0.0
    eps = max(0.05, 1.0 - episode / 60)
    while not done:
        action = agent.act(obs, eps)
        next_obs, reward, done = env.step(action)
        buffer.append((obs, action, reward, next_obs, done and env.state == env.n - 1))
        obs, total = next_obs, total + reward
        if len(buffer) >= 64:
            agent.update(collate(random.sample(buffer, 32)))
    returns.append(total)
    if episode % 30 == 29:
        print(f"episode {episode} mean return {sum(returns[-30:]) / 30:.3f}")
