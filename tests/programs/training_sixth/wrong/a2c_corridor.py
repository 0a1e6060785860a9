"""Advantage actor-critic on a vectorised corridor environment."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


class Corridor:
    def __init__(self, n_envs, length=12, horizon=40):
        self.n_envs, self.length, self.horizon = n_envs, length, horizon
        self.pos = torch.zeros(n_envs, dtype=torch.long)
        self.t = torch.zeros(n_envs, dtype=torch.long)

    def observe(self):
        x = self.pos.float() / self.length
        t = self.t.float() / self.horizon
        return torch.stack([x, x * x, torch.sin(6 * x), t], dim=1)

    def reset(self):
        self.pos = torch.randint(0, self.length // 2, (self.n_envs,))
        self.t = torch.zeros_like(self.t)
        return self.observe()

    def step(self, action):
        move = action * 2 - 1
        slip = torch.rand(self.n_envs) < 0.1
        self.pos = (self.pos + torch.where(slip, -move, move)).clamp(0, self.length)
        self.t = self.t + 1
        goal = self.pos == self.length
        reward = goal.float() - 0.01
        done = goal | (self.t >= self.horizon)
        self.pos = torch.where(done, torch.randint(0, self.length // 2, (self.n_envs,)), self.pos)
        self.t = torch.where(done, torch.zeros_like(self.t), self.t)
        return self.observe(), reward, done.float()


def mlp(sizes):
    layers = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if i < len(sizes) - 2:
            layers.append(nn.Tanh())
    return nn.Sequential(*layers)


class Agent(nn.Module):
    def __init__(self, obs_dim=4, hidden=32, n_actions=2):
        super().__init__()
        self.actor = mlp([obs_dim, hidden, n_actions])
        self.critic = mlp([obs_dim, hidden, 1])

    def value(self, obs):
        return self.critic(obs).squeeze(-1)

    def policy(self, obs):
        return Categorical(logits=self.actor(obs))


@torch.no_grad()
def rollout(agent, env, obs, steps, gamma):
    all_obs, actions, rewards, dones = [], [], [], []
    for _ in range(steps):
        action = agent.policy(obs).sample()
        all_obs.append(obs)
        actions.append(action)
        obs, reward, done = env.step(action)
        rewards.append(reward)
        dones.append(done)
    ret = agent.value(obs)
    returns = []
    for reward, done in zip(reversed(rewards), reversed(dones)):
        ret = reward + gamma * (1 - done) * ret
        returns.insert(0, ret)
    return torch.cat(all_obs), torch.cat(actions), torch.cat(returns), obs


def compute_losses(agent, obs, actions, returns):
    dist = agent.policy(obs)
    values = agent.value(obs)
    advantages = returns - values
    policy_loss = -(dist.log_prob(actions) * advantages).mean()
    value_loss = F.mse_loss(values, returns)
    return policy_loss, value_loss, dist.entropy().mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=120)
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    env = Corridor(16)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.lr)
    obs = env.reset()
    for update in range(args.updates):
        b_obs, b_act, b_ret, obs = rollout(agent, env, obs, 16, args.gamma)
        policy_loss, value_loss, entropy = compute_losses(agent, b_obs, b_act, b_ret)
        loss = policy_loss + 0.5 * value_loss - 0.01 * entropy
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        if update % 30 == 0:
            print(f"update {update} return {b_ret.mean():.3f} value loss {value_loss:.3f}")
