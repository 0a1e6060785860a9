"""Double-DQN on a small continuous corridor: carry the lantern to the goal without hitting the walls."""
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class CorridorEnv:
    """State: (position, velocity, goal). Actions: push left, coast, push right."""

    max_steps = 40

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros(3, dtype=np.float32)

    def reset(self):
        self.state[0] = self.rng.uniform(-0.8, 0.8)
        self.state[1] = 0.0
        self.state[2] = self.rng.uniform(-0.6, 0.6)
        self.t = 0
        return self.state

    def step(self, action):
        self.state[1] = 0.7 * self.state[1] + 0.06 * (action - 1)
        self.state[0] += self.state[1]
        self.t += 1
        dist = abs(float(self.state[0] - self.state[2]))
        crashed = abs(float(self.state[0])) > 1.0
        reward = -5.0 if crashed else 0.3 - dist
        return self.state, reward, crashed, self.t >= self.max_steps


class Replay:
    def __init__(self, capacity):
        self.data = deque(maxlen=capacity)

    def push(self, obs, action, reward, next_obs, terminated):
        self.data.append((obs, action, reward, next_obs, terminated))

    def sample(self, n):
        obs, action, reward, next_obs, term = zip(*random.sample(self.data, n))
        return (
            torch.from_numpy(np.stack(obs)),
            torch.tensor(action),
            torch.tensor(reward, dtype=torch.float32),
            torch.from_numpy(np.stack(next_obs)),
            torch.tensor(term, dtype=torch.float32),
        )


def make_q():
    return nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))


@torch.no_grad()
def evaluate(q, episodes=15, seed=999):
    env, returns = CorridorEnv(seed), []
    for _ in range(episodes):
        obs, total, over = env.reset(), 0.0, False
        while not over:
            obs, reward, term, trunc = env.step(q(torch.from_numpy(obs)).argmax().item())
            total += reward
            over = term or trunc
        returns.append(total)
    return float(np.mean(returns))


random.seed(0)
torch.manual_seed(0)
env, memory = CorridorEnv(seed=1), Replay(5000)
q, q_target = make_q(), make_q()
q_target.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), lr=3e-3)
gamma, tau, batch_size, n_steps = 0.95, 0.03, 64, 2000

obs, losses = env.reset(), []
print(f"untrained return {evaluate(q):.2f}")
for step in range(1, n_steps + 1):
    eps = max(0.1, 1.0 - step / 1000)
    if random.random() < eps:
        action = random.randrange(3)
    else:
        with torch.no_grad():
            action = q(torch.from_numpy(obs)).argmax().item()
    next_obs, reward, terminated, truncated = env.step(action)
    memory.push(obs, action, reward, next_obs, terminated)
    obs = env.reset() if terminated or truncated else next_obs

    if len(memory.data) >= 200 and step % 2 == 0:
        s, a, r, s2, d = memory.sample(batch_size)
        with torch.no_grad():
            best = q(s2).argmax(dim=1, keepdim=True)
            target = r + gamma * (1 - d) * q_target(s2).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(q(s).gather(1, a.unsqueeze(1)).squeeze(1), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for p, p_t in zip(q.parameters(), q_target.parameters()):
                p_t.lerp_(p, tau)
        losses.append(loss.item())
    if step % 500 == 0:
        print(f"step {step:5d}  td loss {np.mean(losses[-100:]):.4f}  eps {eps:.2f}")

final_return = evaluate(q)
print(f"greedy return after training {final_return:.2f}")
