import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Normal


class BalanceEnv:
    def __init__(self, num, seed):
        self.rng = np.random.default_rng(seed)
        self.num = num
        self.state = np.zeros((num, 4), dtype=np.float32)

    def reset(self):
        self.state[:] = self.rng.normal(size=(self.num, 4))
        return self.state

    def step(self, action):
        self.state[:, :2] += 0.2 * self.state[:, 2:]
        self.state[:, 2:] += 0.3 * action - 0.1 * self.state[:, :2]
        self.state += 0.05 * self.rng.normal(size=self.state.shape).astype(np.float32)
        reward = -np.abs(self.state[:, :2]).sum(axis=1)
        return self.state, reward


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.mean = nn.Linear(32, 2)
        self.value = nn.Linear(32, 1)
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, obs):
        h = self.trunk(obs)
        return Normal(self.mean(h), self.log_std.exp()), self.value(h).squeeze(1)


def discounted(rewards, last_value, gamma=0.95):
    out, running = [], last_value
    for r in reversed(rewards):
        running = r + gamma * running
        out.append(running)
    return torch.stack(out[::-1])


class A2C:
    def __init__(self, env, horizon=12):
        self.env, self.horizon = env, horizon
        self.agent = Agent()
        self.opt = torch.optim.Adam(self.agent.parameters(), lr=3e-3)

    def rollout(self):
        logps, values, rewards, entropies = [], [], [], []
        obs = torch.from_numpy(self.env.reset())
        for _ in range(self.horizon):
            dist, value = self.agent(obs)
            action = dist.sample()
            raw, reward = self.env.step(action.numpy())
            obs = torch.from_numpy(raw)
            logps.append(dist.log_prob(action).sum(1))
            entropies.append(dist.entropy().sum(1))
            values.append(value)
            rewards.append(torch.as_tensor(reward, dtype=torch.float32))
        with torch.no_grad():
            last = self.agent(obs)[1]
        return torch.stack(logps), torch.stack(values), torch.stack(entropies), discounted(rewards, last)

    def train_once(self):
        logp, value, entropy, ret = self.rollout()
        adv = (ret - value).detach()
        pg = -(logp * (adv - adv.mean()) / (adv.std() + 1e-6)).mean()
        loss = pg + 0.5 * (ret - value).pow(2).mean() - 0.001 * entropy.mean()
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.agent.parameters(), 1.0)
        self.opt.step()
        return loss.item(), ret.mean().item()


if __name__ == "__main__":
    torch.manual_seed(7)
    algo = A2C(BalanceEnv(num=16, seed=7))
    for it in range(15):
        loss, ret = algo.train_once()
        if it % 3 == 0:
            print(f"it {it:2d} loss {loss:.4f} return {ret:.4f}")
