"""DDPG on a small continuous task: steer a kite (position, velocity) to the origin with bounded force."""
import argparse
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class KiteEnv:
    horizon = 40

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.t = 0
        self.state = self.rng.uniform(-1, 1, size=2).astype(np.float32)
        return self.state.copy()

    def step(self, action):
        pos, vel = self.state
        vel = 0.9 * vel + 0.2 * float(action) + 0.02 * self.rng.normal()
        pos = np.clip(pos + 0.3 * vel, -2.0, 2.0)
        self.state = np.array([pos, vel], dtype=np.float32)
        self.t += 1
        reward = -(10 * pos ** 2 + vel ** 2 + 0.1 * float(action) ** 2)
        return self.state.copy(), float(reward), self.t >= self.horizon


class ReplayBuffer:
    def __init__(self, size):
        self.s, self.s2 = np.zeros((size, 2), np.float32), np.zeros((size, 2), np.float32)
        self.a, self.r = np.zeros((size, 1), np.float32), np.zeros((size, 1), np.float32)
        self.n, self.size = 0, size

    def add(self, s, a, r, s2):
        i = self.n % self.size
        self.s[i], self.a[i], self.r[i], self.s2[i] = s, a, r, s2
        self.n += 1

    def sample(self, rng, batch):
        i = rng.integers(0, min(self.n, self.size), size=batch)
        return (torch.from_numpy(arr[i]) for arr in (self.s, self.a, self.r, self.s2))


class Critic(nn.Module):
    def __init__(self, h=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 1))

    def forward(self, s, a):
        return self.body(torch.cat([s, a], dim=-1))


class DDPG:
    def __init__(self, gamma=0.95, tau=0.02, lr=1e-3):
        self.gamma, self.tau = gamma, tau
        self.actor = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 1), nn.Tanh())
        self.critic = Critic()
        self.actor_target, self.critic_target = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=lr)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=lr)

    def update(self, s, a, r, s2):
        with torch.no_grad():  # episodes end by time limit only: always bootstrap
            target = r + self.gamma * self.critic_target(s2, self.actor_target(s2))
        critic_loss = F.mse_loss(self.critic(s, a), target)
        critic_loss.backward()
        self.critic_opt.step()
        self.critic_opt.zero_grad()

        actor_loss = -self.critic(s, self.actor(s)).mean()
        actor_loss.backward()
        self.actor_opt.step()
        self.actor_opt.zero_grad()

        with torch.no_grad():
            for net, tgt in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
                for p, q in zip(net.parameters(), tgt.parameters()):
                    q.lerp_(p, self.tau)
        return critic_loss.item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--episodes", type=int, default=30)
    ap.add_argument("--seed", type=int, default=0)
    args, _ = ap.parse_known_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    env, agent, buffer = KiteEnv(args.seed + 1), DDPG(), ReplayBuffer(5000)
    for episode in range(args.episodes):
        s, done, total, loss = env.reset(), False, 0.0, 0.0
        while not done:
            with torch.no_grad():
                a = agent.actor(torch.from_numpy(s)).item()
            a = float(np.clip(a + 0.2 * rng.normal(), -1, 1))
            s2, r, done = env.step(a)
            buffer.add(s, a, r, s2)
            s, total = s2, total + r
            if buffer.n >= 200:
                loss = agent.update(*buffer.sample(rng, 64))
        if episode % 6 == 5:
            print(f"episode {episode + 1:3d}  return {total:7.2f}  critic loss {loss:8.3f}")


if __name__ == "__main__":
    main()
