import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Actor(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_obs, 32), nn.ReLU(), nn.Linear(32, n_act), nn.Tanh())

    def forward(self, obs):
        return self.net(obs)


class Critic(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.q1, self.q2 = (
            nn.Sequential(nn.Linear(n_obs + n_act, 32), nn.ReLU(), nn.Linear(32, 1)) for _ in range(2)
        )

    def forward(self, obs, action):
        x = torch.cat([obs, action], dim=-1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)


class TD3:
    def __init__(self, n_obs, n_act, gamma=0.95, tau=0.02, delay=2):
        self.actor, self.critic = Actor(n_obs, n_act), Critic(n_obs, n_act)
        self.actor_slow = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_slow = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.gamma, self.tau, self.delay = gamma, tau, delay
        self.calls = 0

    @torch.no_grad()
    def goal(self, reward, nxt):
        noise = (0.2 * torch.randn(len(nxt), 2)).clamp(-0.5, 0.5)
        action = (self.actor_slow(nxt) + noise).clamp(-1, 1)
        return reward + self.gamma * torch.min(*self.critic_slow(nxt, action))

    def train_critic(self, obs, action, reward, nxt):
        goal = self.goal(reward, nxt)
        q1, q2 = self.critic(obs, action)
        loss = F.mse_loss(q1, goal) + F.mse_loss(q2, goal)
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()
        return loss.item()

    def train_actor(self, obs):
        loss = -self.critic(obs, self.actor(obs))[0].mean()
        self.actor_opt.zero_grad()
        loss.backward()
        self.actor_opt.step()

    def follow(self):
        for slow, fast in ((self.actor_slow, self.actor), (self.critic_slow, self.critic)):
            for p_slow, p in zip(slow.parameters(), fast.parameters()):
                p_slow.data.mul_(1 - self.tau).add_(self.tau * p.data)

    def update(self, batch):
        self.calls += 1
        loss = self.train_critic(*batch)
        if self.calls % self.delay == 0:
            self.train_actor(batch[0])
            self.follow()
        return loss


def sample_batch(size=64):
    obs = torch.rand(size, 4) * 2 - 1
    action = torch.rand(size, 2) * 2 - 1
    hand = (obs[:, :2] + 0.3 * action).clamp(-1, 1)
    reward = -(hand - obs[:, 2:]).pow(2).sum(dim=1)
    return obs, action, reward, torch.cat([hand, obs[:, 2:]], dim=1)


def main(steps=150):
    torch.manual_seed(0)
    agent = TD3(4, 2)
    for step in range(steps):
        loss = agent.update(sample_batch())
        if step % 50 == 0:
            print(f"step {step} critic loss {loss:.4f}")
    return agent


if __name__ == "__main__":
    agent = main()
