"""DDPG on a small continuous task: lower a load with a winch to a mark, without swinging past it."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Winch:
    """State: (distance to the mark, speed, load). Action: motor current in [-1, 1]."""
    horizon = 40

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.t = 0
        self.distance = self.rng.uniform(-1.5, 1.5)
        self.speed = 0.0
        self.load = self.rng.uniform(0.5, 1.5)
        return self._observe()

    def step(self, action):
        self.speed = 0.85 * self.speed + 0.2 * (float(action) / self.load)
        self.distance = float(np.clip(self.distance + 0.5 * self.speed, -3.0, 3.0))
        self.t += 1
        reward = -(self.distance ** 2) - 0.05 * self.speed ** 2 - 0.02 * float(action) ** 2
        return self._observe(), reward, self.t >= self.horizon

    def _observe(self):
        return np.array([self.distance, self.speed, self.load], dtype=np.float32)


class Memory:
    def __init__(self, size, obs_dim):
        self.data = torch.zeros(size, 2 * obs_dim + 2)
        self.obs_dim, self.size, self.count = obs_dim, size, 0

    def add(self, obs, action, reward, next_obs):
        row = np.concatenate([obs, [action, reward], next_obs])
        self.data[self.count % self.size] = torch.as_tensor(row, dtype=torch.float32)
        self.count += 1

    def sample(self, n):
        rows = self.data[torch.randint(0, min(self.count, self.size), (n,))]
        return rows.split([self.obs_dim, 1, 1, self.obs_dim], dim=1)


def mlp(n_in, n_out, *last):
    return nn.Sequential(nn.Linear(n_in, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, n_out), *last)


class DDPG:
    def __init__(self, obs_dim, gamma=0.95, tau=0.02):
        self.actor, self.critic = mlp(obs_dim, 1, nn.Tanh()), mlp(obs_dim + 1, 1)
        self.actor_target, self.critic_target = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.gamma, self.tau = gamma, tau

    @torch.no_grad()
    def act(self, obs, noise=0.0):
        action = self.actor(torch.as_tensor(obs)).item() + noise * np.random.randn()
        return float(np.clip(action, -1.0, 1.0))

    def update(self, obs, action, reward, next_obs):
        # the horizon is only a time limit, so the value is always bootstrapped
        with torch.no_grad():
            next_q = self.critic_target(torch.cat([next_obs, self.actor_target(next_obs)], 1))
            backup = reward + self.gamma * next_q
        critic_loss = F.mse_loss(self.critic(torch.cat([obs, action], 1)), backup)
        critic_loss.backward()
        self.critic_opt.step()
        self.critic_opt.zero_grad()

        actor_loss = -self.critic(torch.cat([obs, self.actor(obs)], 1)).mean()
        actor_loss.backward()
        self.actor_opt.step()
        self.actor_opt.zero_grad()

        with torch.no_grad():
            for net, target in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
                for p, q in zip(net.parameters(), target.parameters()):
                    q.lerp_(p, self.tau)
        return critic_loss.item()


if __name__ == "__main__":
    torch.manual_seed(2)
    np.random.seed(2)
    env, agent, memory = Winch(seed=2), DDPG(obs_dim=3), Memory(20_000, obs_dim=3)
    returns = []
    for episode in range(40):
        obs, done, total = env.reset(), False, 0.0
        while not done:
            action = agent.act(obs, noise=0.3)
            next_obs, reward, done = env.step(action)
            memory.add(obs, action, reward, next_obs)
            obs, total = next_obs, total + reward
            if memory.count > 200:
                critic_loss = agent.update(*memory.sample(64))
        returns.append(total)
        if episode % 8 == 7:
            print(f"episode {episode + 1:3d}  return {np.mean(returns[-8:]):8.2f}  critic loss {critic_loss:.4f}")
