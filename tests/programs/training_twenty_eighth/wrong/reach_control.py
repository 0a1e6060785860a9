"""Deterministic policy gradient for a reaching arm: replay, a soft target pair, exploration noise."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class ReachTask:
    """A batch of fingertips on a plane, each with a goal of its own; episodes are cut after a fixed length."""

    def __init__(self, count, length=15):
        self.count, self.length = count, length

    def reset(self):
        self.tip = torch.rand(self.count, 2) * 2 - 1
        self.goal = torch.rand(self.count, 2) * 2 - 1
        return self.observe()

    def observe(self):
        return torch.cat([self.tip, self.goal - self.tip], 1)

    def step(self, action):
        self.tip = (self.tip + 0.25 * action).clamp(-1.5, 1.5)
        reward = -(self.goal - self.tip).norm(dim=1) - 0.02 * action.pow(2).sum(1)
        return self.observe(), reward


class Replay:
    def __init__(self, capacity, obs_dim, act_dim):
        self.obs = torch.zeros(capacity, obs_dim)
        self.act = torch.zeros(capacity, act_dim)
        self.rew = torch.zeros(capacity)
        self.next_obs = torch.zeros(capacity, obs_dim)
        self.capacity, self.cursor, self.filled = capacity, 0, 0

    def add(self, obs, act, rew, next_obs):
        idx = torch.arange(self.cursor, self.cursor + len(obs)) % self.capacity
        self.obs[idx], self.act[idx], self.rew[idx], self.next_obs[idx] = obs, act, rew, next_obs
        self.cursor = (self.cursor + len(obs)) % self.capacity
        self.filled = min(self.capacity, self.filled + len(obs))

    def sample(self, n):
        idx = torch.randint(self.filled, (n,))
        return self.obs[idx], self.act[idx], self.rew[idx], self.next_obs[idx]


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU(), nn.Linear(hidden, act_dim), nn.Tanh())

    def forward(self, obs):
        return self.net(obs)


class Critic(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim + act_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, 1))

    def forward(self, obs, act):
        return self.net(torch.cat([obs, act], 1)).squeeze(1)


class Agent:
    def __init__(self, obs_dim, act_dim, gamma=0.9, tau=0.05):
        self.actor, self.critic = Actor(obs_dim, act_dim), Critic(obs_dim, act_dim)
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=2e-3)
        self.gamma, self.tau = gamma, tau

    @torch.no_grad()
    def act(self, obs, noise=0.0):
        action = self.actor(obs)
        return (action + noise * torch.randn_like(action)).clamp(-1, 1)

    def learn(self, obs, act, rew, next_obs):
        with torch.no_grad():
            target = rew + self.gamma * self.critic_target(next_obs, self.actor_target(next_obs))
        critic_loss = F.mse_loss(self.critic(obs, act), target)
        critic_loss.backward()
        self.critic_opt.step()
        self.critic_opt.zero_grad()

        actor_loss = -self.critic(obs, self.actor(obs)).mean()
        actor_loss.backward()
        self.actor_opt.step()
        self.actor_opt.zero_grad()

        with torch.no_grad():
            for net, slow in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
                for p, q in zip(net.parameters(), slow.parameters()):
                    q.lerp_(p, self.tau)
        return critic_loss.item(), -actor_loss.item()


def evaluate(agent, count=128):
    task, total = ReachTask(count), 0.0
    obs = task.reset()
    for _ in range(task.length):
        obs, reward = task.step(agent.act(obs))
        total += reward.mean().item()
    return total


def main(episodes=26):
    torch.manual_seed(11)
    task, agent = ReachTask(8), Agent(4, 2)
    replay = Replay(4000, 4, 2)
    for episode in range(episodes):
        obs = task.reset()
        for _ in range(task.length):
            act = agent.act(obs, noise=0.3)
            next_obs, rew = task.step(act)
            replay.add(obs, act, rew, next_obs)
            obs = next_obs
            td, value = agent.learn(*replay.sample(64))
        if episode % 13 == 12:
            print(f"episode {episode + 1:3d}  td loss {td:.4f}  value {value:7.3f}  test return {evaluate(agent):7.3f}")
    return agent, replay


if __name__ == "__main__":
    agent, replay = main()
