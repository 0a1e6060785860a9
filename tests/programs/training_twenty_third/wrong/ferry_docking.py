"""DQN on a ferry that has to stop at its pier: three actions (astern, idle, ahead), waves, time limit."""
import random
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

GAMMA = 0.97
ACTIONS = np.array([-1.0, 0.0, 1.0], dtype=np.float32)


class FerryEnv:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.state = self.rng.uniform([-2.0, -0.5], [2.0, 0.5]).astype(np.float32)
        self.t = 0
        return self.observe()

    def observe(self):
        return self.state

    def step(self, action):
        # state: distance to the pier, speed
        self.state[1] += 0.25 * ACTIONS[action] - 0.05 * self.state[1] + 0.02 * self.rng.standard_normal()
        self.state[0] += 0.25 * self.state[1]
        self.t += 1
        docked = bool(abs(self.state[0]) < 0.25 and abs(self.state[1]) < 0.25)
        lost = bool(abs(self.state[0]) > 4.0)
        reward = 5.0 if docked else -5.0 if lost else -0.1 - 0.05 * abs(float(self.state[0]))
        return self.observe(), reward, docked or lost, self.t >= 40


class ReplayBuffer:
    def __init__(self, capacity):
        self.items = deque(maxlen=capacity)

    def push(self, obs, action, reward, next_obs, terminated):
        self.items.append((torch.from_numpy(obs), action, reward, torch.from_numpy(next_obs), float(terminated)))

    def sample(self, n):
        obs, action, reward, next_obs, terminated = zip(*random.sample(self.items, n))
        return (torch.stack(obs), torch.tensor(action), torch.tensor(reward),
                torch.stack(next_obs), torch.tensor(terminated))


def q_network():
    return nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, len(ACTIONS)))


@torch.no_grad()
def greedy(net, obs):
    return int(net(torch.as_tensor(obs)).argmax())


def evaluate(net, episodes=20):
    env, total, docked = FerryEnv(seed=999), 0.0, 0
    for _ in range(episodes):
        obs, over = env.reset(), False
        while not over:
            obs, reward, terminated, truncated = env.step(greedy(net, obs))
            total += reward
            over = terminated or truncated
        docked += reward > 0
    return total / episodes, docked / episodes


def train(steps=2500, batch=64, warmup=300, sync_every=100):
    random.seed(0)
    torch.manual_seed(0)
    env, buffer = FerryEnv(seed=1), ReplayBuffer(5000)
    online, target = q_network(), q_network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)

    obs = env.reset()
    for step in range(steps):
        epsilon = max(0.1, 1.0 - step / (0.5 * steps))
        action = random.randrange(3) if random.random() < epsilon else greedy(online, obs)
        next_obs, reward, terminated, truncated = env.step(action)
        buffer.push(obs, action, reward, next_obs, terminated)
        obs = env.reset() if terminated or truncated else next_obs

        if step < warmup:
            continue
        o, a, r, o2, d = buffer.sample(batch)
        with torch.no_grad():
            backup = r + GAMMA * (1.0 - d) * target(o2).max(dim=1).values
        q = online(o).gather(1, a[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, backup)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if step % sync_every == 0:
            target.load_state_dict(online.state_dict())
        if step % 500 == 0:
            print(f"step {step:5d}  eps {epsilon:.2f}  loss {loss.item():.4f}  mean Q {q.mean().item():.3f}")
    return online, buffer


if __name__ == "__main__":
    net, memory = train()
    mean_return, dock_rate = evaluate(net)
    print(f"greedy policy: return {mean_return:.2f}, docked in {dock_rate:.0%} of episodes")
