"""Level control of a two-tank process with a deterministic actor and a learned value function."""
import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class TwoTanks:
    def __init__(self, n, rng):
        self.n, self.rng = n, rng
        self.reset()

    def reset(self):
        self.level = self.rng.uniform(0.2, 1.0, (self.n, 2)).astype(np.float32)
        self.goal = self.rng.uniform(0.3, 0.8, (self.n, 1)).astype(np.float32)
        return self.observe()

    def observe(self):
        return np.concatenate([self.level, self.goal], axis=1)

    def step(self, pump):
        inflow = 0.15 * (pump[:, 0] + 1)
        between = 0.2 * np.sqrt(np.maximum(self.level[:, 0], 0))
        outflow = 0.2 * np.sqrt(np.maximum(self.level[:, 1], 0))
        self.level[:, 0] += inflow - between
        self.level[:, 1] += between - outflow
        self.level = np.clip(self.level + 0.005 * self.rng.standard_normal(self.level.shape), 0, 2).astype(np.float32)
        reward = -np.abs(self.level[:, 1] - self.goal[:, 0]) * 3
        return self.observe(), reward.astype(np.float32)


class Actor(nn.Module):
    def __init__(self, obs=3, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, s):
        return torch.tanh(self.net(s))


class Value(nn.Module):
    def __init__(self, obs=3, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs + 1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, s, a):
        return self.net(torch.cat([s, a], dim=1)).squeeze(1)


class Agent:
    def __init__(self, gamma=0.9, tau=0.02):
        self.gamma, self.tau = gamma, tau
        self.actor, self.value = Actor(), Value()
        self.actor_slow, self.value_slow = copy.deepcopy(self.actor), copy.deepcopy(self.value)
        for p in [*self.actor_slow.parameters(), *self.value_slow.parameters()]:
            p.requires_grad_(False)
        self.opt_actor = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.opt_value = torch.optim.Adam(self.value.parameters(), lr=2e-3)

    def learn(self, s, a, r, s2):
        target = r + self.gamma * self.value_slow(s2, self.actor_slow(s2))
        loss_value = F.mse_loss(self.value(s, a), target)
        self.opt_value.zero_grad()
        loss_value.backward()
        self.opt_value.step()

        loss_actor = -self.value(s, self.actor(s)).mean()
        self.opt_actor.zero_grad()
        loss_actor.backward()
        self.opt_actor.step()

        with torch.no_grad():
            for slow, fast in ((self.actor_slow, self.actor), (self.value_slow, self.value)):
                for p, q in zip(slow.parameters(), fast.parameters()):
                    p.lerp_(q, self.tau)
        return loss_value.item(), loss_actor.item()


def rollout(agent, env, steps=30):
    obs, total = env.reset(), 0.0
    for _ in range(steps):
        with torch.no_grad():
            a = agent.actor(torch.from_numpy(obs)).numpy()
        obs, r = env.step(a)
        total += r.mean()
    return total / steps


def main(iterations=600, batch=96):
    torch.manual_seed(6)
    rng = np.random.default_rng(17)
    agent, env = Agent(), TwoTanks(8, rng)
    memory, obs = [], env.reset()
    before = rollout(agent, TwoTanks(64, np.random.default_rng(1)))
    for it in range(iterations):
        with torch.no_grad():
            a = agent.actor(torch.from_numpy(obs)).numpy()
        a = np.clip(a + 0.4 * rng.standard_normal(a.shape), -1, 1).astype(np.float32)
        nxt, r = env.step(a)
        memory.extend(zip(obs, a, r, nxt))
        obs = env.reset() if it % 30 == 29 else nxt
        if len(memory) < batch:
            continue
        pick = rng.integers(0, len(memory), batch)
        s, act, rew, s2 = (torch.from_numpy(np.stack([memory[i][k] for i in pick])) for k in range(4))
        lv, la = agent.learn(s, act, rew, s2)
        if it % 150 == 0:
            print(f"{it:4d}  value loss {lv:.3f}  actor loss {la:.3f}")
    after = rollout(agent, TwoTanks(64, np.random.default_rng(1)))
    print(f"mean reward before {before:.3f}, after {after:.3f}")


if __name__ == "__main__":
    main()
