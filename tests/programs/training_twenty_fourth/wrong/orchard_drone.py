"""DQN for a small drone that has to hover over a marked tree (2-D double integrator, five thrust commands)."""
import argparse
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

THRUST = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.float32)


class HoverEnv:
    """State: offset to the tree (x, y) and velocity (vx, vy)."""

    def __init__(self, horizon=40, dt=0.2, seed=0):
        self.horizon, self.dt = horizon, dt
        self.rng = np.random.default_rng(seed)

    def _observe(self):
        return self.state

    def reset(self):
        self.t = 0
        self.state = np.zeros(4, dtype=np.float32)
        self.state[:2] = self.rng.uniform(-1.5, 1.5, size=2)
        return self._observe()

    def step(self, action):
        self.state[2:] = 0.9 * self.state[2:] + THRUST[action] * self.dt
        self.state[:2] += self.state[2:] * self.dt
        self.t += 1
        reward = -float(np.linalg.norm(self.state[:2]))
        return self._observe(), reward, self.t >= self.horizon


class Replay:
    def __init__(self, capacity):
        self.items = deque(maxlen=capacity)

    def push(self, obs, action, reward, nxt):
        self.items.append((torch.from_numpy(obs), action, reward, torch.from_numpy(nxt)))

    def sample(self, k):
        obs, action, reward, nxt = zip(*random.sample(self.items, k))
        return torch.stack(obs), torch.tensor(action), torch.tensor(reward), torch.stack(nxt)

    def __len__(self):
        return len(self.items)


def q_network():
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, len(THRUST)))


@torch.no_grad()
def greedy_return(net, episodes=20):
    env, total = HoverEnv(seed=999), 0.0
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            obs, reward, done = env.step(net(torch.from_numpy(obs)).argmax().item())
            total += reward
    return total / episodes


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--episodes", type=int, default=55)
    p.add_argument("--gamma", type=float, default=0.93)
    p.add_argument("--batch", type=int, default=64)
    args, _ = p.parse_known_args()
    random.seed(3), torch.manual_seed(3)

    env, replay = HoverEnv(seed=3), Replay(5000)
    online, target = q_network(), q_network()
    target.load_state_dict(online.state_dict())
    opt = torch.optim.Adam(online.parameters(), lr=1e-3)
    updates = 0
    for episode in range(args.episodes):
        eps = max(0.05, 1.0 - episode / 28)
        obs, done = env.reset(), False
        while not done:
            if random.random() < eps:
                action = random.randrange(len(THRUST))
            else:
                with torch.no_grad():
                    action = online(torch.from_numpy(obs)).argmax().item()
            nxt, reward, done = env.step(action)
            replay.push(obs, action, reward, nxt)  # the time limit is no terminal state: always bootstrap
            obs = nxt
            if len(replay) < 300:
                continue
            o, a, r, n = replay.sample(args.batch)
            with torch.no_grad():
                best = online(n).argmax(1, keepdim=True)
                y = r + args.gamma * target(n).gather(1, best).squeeze(1)
            loss = F.smooth_l1_loss(online(o).gather(1, a[:, None]).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            updates += 1
            if updates % 150 == 0:
                target.load_state_dict(online.state_dict())
    print(f"updates {updates}  last td loss {loss.item():.4f}  greedy return {greedy_return(online):.2f}")


if __name__ == "__main__":
    main()
