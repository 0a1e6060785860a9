"""Soft actor-critic learner on a synthetic replay batch."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

from rl_updates import apply_update, soft_update


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, act_dim)
        self.log_std = nn.Parameter(torch.zeros(act_dim))

    def sample(self, obs):
        dist = Normal(self.mu(self.trunk(obs)), self.log_std.exp())
        raw = dist.rsample()
        return torch.tanh(raw), dist.log_prob(raw).sum(-1, keepdim=True)


class TwinCritic(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden=32):
        super().__init__()
        self.q1 = nn.Sequential(nn.Linear(obs_dim + act_dim, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.q2 = nn.Sequential(nn.Linear(obs_dim + act_dim, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, obs, act):
        joint = torch.cat([obs, act], dim=-1)
        return self.q1(joint), self.q2(joint)


class Learner:
    def __init__(self, obs_dim=6, act_dim=2):
        self.actor = Actor(obs_dim, act_dim)
        self.critic = TwinCritic(obs_dim, act_dim)
        self.target = copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=3e-4)
        self.alpha, self.gamma = 0.2, 0.99

    def critic_loss(self, obs, act, rew, nxt):
        with torch.no_grad():
            nxt_act, nxt_logp = self.actor.sample(nxt)
            tq1, tq2 = self.target(nxt, nxt_act)
            goal = rew + self.gamma * (torch.min(tq1, tq2) - self.alpha * nxt_logp)
        q1, q2 = self.critic(obs, act)
        return F.mse_loss(q1, goal) + F.mse_loss(q2, goal)

    def actor_loss(self, obs):
        act, logp = self.actor.sample(obs)
        q1, q2 = self.critic(obs, act)
        return (self.alpha * logp - torch.min(q1, q2)).mean()

    def learn(self, batch):
        obs, act, rew, nxt = batch
        value_loss = self.critic_loss(obs, act, rew, nxt)
        apply_update(self.critic_opt, self.critic, value_loss)
        policy_loss = self.actor_loss(obs)
        apply_update(self.actor_opt, self.actor, policy_loss)
        soft_update(self.target, self.critic, 0.005)
        return value_loss.item(), policy_loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    learner = Learner()
    for _ in range(3):
        batch = (torch.randn(16, 6), torch.rand(16, 2) * 2 - 1, torch.randn(16, 1), torch.randn(16, 6))
        print(learner.learn(batch))
