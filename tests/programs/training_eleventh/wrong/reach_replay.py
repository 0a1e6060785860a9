"""Q-learning with a replay memory on a small point-mass task: park a cart at the origin with three thrust settings."""
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED, GAMMA, BATCH = 3, 0.95, 64
EPISODES = 50
HORIZON = 40
TARGET_EVERY = 100

random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


class CartEnv:
    """Position and velocity on a line; thrust in {-1, 0, 1}; the closer to the origin, the better."""

    def __init__(self, rng):
        self.rng = rng
        self.obs = np.zeros(2, dtype=np.float32)
        self.t = 0

    def reset(self):
        self.obs[0] = self.rng.uniform(-1.5, 1.5)
        self.obs[1] = self.rng.uniform(-0.3, 0.3)
        self.t = 0
        return self.obs

    def step(self, action):
        thrust = (action - 1) * 0.25
        self.obs[1] = 0.9 * self.obs[1] + thrust
        self.obs[0] = np.clip(self.obs[0] + 0.4 * self.obs[1], -2.5, 2.5)
        self.t += 1
        reward = 1.0 - min(1.0, abs(float(self.obs[0]))) - 0.1 * abs(float(self.obs[1]))
        return self.obs, reward, self.t >= HORIZON


class Memory:
    def __init__(self, size):
        self.items = deque(maxlen=size)

    def add(self, obs, action, reward, next_obs):
        self.items.append((torch.from_numpy(obs), action, reward, torch.from_numpy(next_obs)))

    def sample(self, n):
        obs, action, reward, next_obs = zip(*random.sample(self.items, n))
        return torch.stack(obs), torch.tensor(action), torch.tensor(reward), torch.stack(next_obs)


class QNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, 3)

    def forward(self, obs):
        return self.head(self.body(obs))


@torch.no_grad()
def evaluate(net, episodes=20):
    env, scores = CartEnv(np.random.default_rng(99)), []
    for _ in range(episodes):
        obs, done, total = env.reset(), False, 0.0
        while not done:
            obs, reward, done = env.step(net(torch.from_numpy(obs)).argmax().item())
            total += reward
        scores.append(total)
    return float(np.mean(scores))


online, target = QNet(), QNet()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
env, memory = CartEnv(np.random.default_rng(SEED)), Memory(5000)
updates = 0

print(f"untrained return {evaluate(online):.2f}")
for episode in range(EPISODES):
    epsilon = max(0.05, 1.0 - episode / 30)
    obs, done, losses = env.reset(), False, []
    while not done:
        with torch.no_grad():
            greedy = online(torch.from_numpy(obs)).argmax().item()
        action = random.randrange(3) if random.random() < epsilon else greedy
        next_obs, reward, done = env.step(action)
        memory.add(obs, action, reward, next_obs)
        obs = next_obs
        if len(memory.items) >= 2 * BATCH:
            s, a, r, s2 = memory.sample(BATCH)
            with torch.no_grad():
                backup = r + GAMMA * target(s2).max(dim=1).values
            q = online(s).gather(1, a.unsqueeze(1)).squeeze(1)
            loss = F.smooth_l1_loss(q, backup)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            updates += 1
            if updates % TARGET_EVERY == 0:
                target.load_state_dict(online.state_dict())
    if losses and episode % 20 == 19:
        print(f"episode {episode + 1}: loss {np.mean(losses):.4f} epsilon {epsilon:.2f}")
final = evaluate(online)
print(f"trained return {final:.2f} after {updates} updates")
