"""DDPG (Lillicrap et al., 2016) on a two-joint arm that has to bring its hand to a goal, with target policy smoothing.

Episodes have a fixed length; 16 arms move in parallel and write into one buffer.
"""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)

ARMS, LENGTH, GAMMA, TAU = 16, 20, 0.9, 0.01


class ArmEnv:
    def reset(self):
        self.angles = (torch.rand(ARMS, 2) - 0.5) * 3
        goal_angles = (torch.rand(ARMS, 2) - 0.5) * 3
        self.goal = self.hand(goal_angles)
        return self.observe()

    @staticmethod
    def hand(angles):
        first, second = angles[:, 0], angles.sum(1)
        return torch.stack([first.cos() + second.cos(), first.sin() + second.sin()], dim=1)

    def observe(self):
        return torch.cat([self.angles.sin(), self.angles.cos(), self.goal, self.goal - self.hand(self.angles)], dim=1)

    def step(self, action):
        self.angles += 0.3 * action
        distance = (self.hand(self.angles) - self.goal).norm(dim=1)
        return self.observe(), -distance - 0.01 * action.pow(2).sum(1)


class Buffer:
    def __init__(self, size, widths):
        self.columns = [torch.zeros(size, w) for w in widths]
        self.size, self.count = size, 0

    def add(self, *rows):
        index = (torch.arange(len(rows[0])) + self.count) % self.size
        for column, row in zip(self.columns, rows):
            column[index] = row
        self.count += len(index)

    def sample(self, n):
        index = torch.randint(0, min(self.count, self.size), (n,))
        return [column[index] for column in self.columns]


def net(inputs, outputs, *tail):
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs), *tail)


class Agent:
    def __init__(self):
        self.actor, self.critic = net(8, 2, nn.Tanh()), net(10, 1)
        self.slow_actor, self.slow_critic = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=2e-3)

    def learn(self, batch):
        obs, action, reward, next_obs = batch
        with torch.no_grad():
            next_action = self.slow_actor(next_obs)
            next_action = (next_action + (0.1 * torch.randn_like(next_action)).clamp(-0.2, 0.2)).clamp(-1, 1)
            goal = reward + GAMMA * self.slow_critic(torch.cat([next_obs, next_action], dim=1))
        critic_loss = F.mse_loss(self.critic(torch.cat([obs, action], dim=1)), goal)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        self.critic.requires_grad_(False)
        actor_loss = -self.critic(torch.cat([obs, self.actor(obs)], dim=1)).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        self.critic.requires_grad_(True)

        with torch.no_grad():
            for slow, fast in ((self.slow_actor, self.actor), (self.slow_critic, self.critic)):
                for a, b in zip(slow.parameters(), fast.parameters()):
                    a.mul_(1 - TAU).add_(b, alpha=TAU)
        return critic_loss.item()


def main():
    env, agent = ArmEnv(), Agent()
    buffer = Buffer(8000, (8, 2, 1, 8))
    for episode in range(1, 49):
        obs, total = env.reset(), 0.0
        for _ in range(LENGTH):
            with torch.no_grad():
                action = (agent.actor(obs) + 0.2 * torch.randn(ARMS, 2)).clamp(-1, 1)
            next_obs, reward = env.step(action)
            # an episode ends because the time is up, not because the arm is done: the value goes on beyond it
            buffer.add(obs, action, reward.unsqueeze(1), next_obs)
            obs, total = next_obs, total + reward.mean().item()
            if episode > 3:
                loss = agent.learn(buffer.sample(128))
        if episode % 12 == 0:
            print(f"episode {episode:3d}  return {total:7.2f}  critic loss {loss:.4f}")


if __name__ == "__main__":
    main()
