"""DQN on a small continuous pond: the heron walks towards a fish and is rewarded for coming closer."""
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn

MOVES = np.array([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]], dtype=np.float32)


class PondEnv:
    """State: heron position (2) and fish position (2), all in [-1, 1]."""

    def __init__(self, seed, horizon=25):
        self.rng, self.horizon = np.random.default_rng(seed), horizon
        self.state = np.zeros(4, dtype=np.float32)

    def _distance(self):
        return float(np.linalg.norm(self.state[:2] - self.state[2:]))

    def reset(self):
        self.state[:] = self.rng.uniform(-1, 1, size=4)
        self.t = 0
        return self.state

    def step(self, action):
        before = self._distance()
        self.state[:2] += MOVES[action]
        np.clip(self.state, -1, 1, out=self.state)
        self.t += 1
        caught = self._distance() < 0.12
        reward = 5.0 * (before - self._distance()) + (1.0 if caught else -0.05)
        return self.state, reward, caught, self.t >= self.horizon


class ReplayBuffer:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *transition):
        self.memory.append(transition)

    def sample(self, n):
        obs, action, reward, next_obs, done = zip(*random.sample(self.memory, n))
        return (
            torch.as_tensor(np.stack(obs)),
            torch.tensor(action),
            torch.tensor(reward, dtype=torch.float32),
            torch.as_tensor(np.stack(next_obs)),
            torch.tensor(done, dtype=torch.float32),
        )

    def __len__(self):
        return len(self.memory)


def build_q():
    return nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 4))


@torch.no_grad()
def success_rate(q, episodes=40):
    env, caught_total = PondEnv(seed=1000), 0
    for _ in range(episodes):
        obs, caught, over = env.reset(), False, False
        while not (caught or over):
            obs, _, caught, over = env.step(q(torch.from_numpy(obs)).argmax().item())
        caught_total += caught
    return caught_total / episodes


def main(total_steps=1200, batch_size=64, gamma=0.9, lr=1e-3, seed=3):
    random.seed(seed)
    torch.manual_seed(seed)
    env, buffer = PondEnv(seed), ReplayBuffer(5000)
    q, target = build_q(), build_q()
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=lr)

    obs = env.reset()
    for step in range(1, total_steps + 1):
        epsilon = max(0.1, 1.0 - step / 1000)
        if random.random() < epsilon:
            action = random.randrange(4)
        else:
            with torch.no_grad():
                action = q(torch.from_numpy(obs)).argmax().item()
        next_obs, reward, caught, over = env.step(action)
        buffer.push(obs, action, reward, next_obs, caught)
        obs = env.reset() if caught or over else next_obs

        if len(buffer) >= 200:
            b_obs, b_action, b_reward, b_next, b_done = buffer.sample(batch_size)
            with torch.no_grad():
                goal = b_reward + gamma * (1 - b_done) * target(b_next).max(dim=1).values
            loss = nn.functional.smooth_l1_loss(q(b_obs).gather(1, b_action[:, None]).squeeze(1), goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 100 == 0:
            target.load_state_dict(q.state_dict())
        if step % 400 == 0:
            print(f"step {step}: loss {loss.item():.4f}  success {success_rate(q):.2f}")
    return q, buffer


if __name__ == "__main__":
    q, buffer = main()
    print("final success rate", success_rate(q))
