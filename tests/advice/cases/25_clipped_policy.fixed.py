"""Clipped policy updates for several agents sharing one critic."""
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self, obs_dim, n_actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, 32), nn.ReLU(), nn.Linear(32, n_actions))

    def forward(self, obs):
        return Categorical(logits=self.net(obs))


class Learner:
    def __init__(self, obs_dim=5, n_actions=3, mini_epochs=4, clip=0.2):
        self.policy = Policy(obs_dim, n_actions)
        self.critic = nn.Sequential(nn.Linear(obs_dim, 32), nn.ReLU(), nn.Linear(32, 1))
        self.policy_opt = torch.optim.Adam(self.policy.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.mini_epochs, self.clip = mini_epochs, clip

    def advantages(self, obs, returns):
        baseline = self.critic(obs)
        return returns - baseline.squeeze(-1)

    def train_actor(self, obs, actions, old_logp, adv):
        logp = self.policy(obs).log_prob(actions)
        ratio = torch.exp(logp - old_logp)
        clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
        loss = -torch.min(ratio * adv, clipped * adv).mean()
        self.policy_opt.zero_grad()
        loss.backward()
        self.policy_opt.step()
        return loss.item()

    def train(self, obs, returns):
        with torch.no_grad():
            dist = self.policy(obs)
            actions = dist.sample()
            old_logp = dist.log_prob(actions)
        adv = self.advantages(obs, returns).detach()
        for _ in range(self.mini_epochs):
            actor_loss = self.train_actor(obs, actions, old_logp, adv)
        critic_loss = (self.critic(obs).squeeze(-1) - returns).pow(2).mean()
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        return actor_loss, critic_loss.item()


if __name__ == "__main__":
    torch.manual_seed(24)
    learner = Learner()
    print(learner.train(torch.randn(40, 5), torch.randn(40)))
