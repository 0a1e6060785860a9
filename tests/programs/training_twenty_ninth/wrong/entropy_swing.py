"""Maximum-entropy actor-critic with a learned temperature on a batch of torque-limited pendulums."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

GAMMA, TAU = 0.95, 0.02
BATCH = 64


class Pendulums:
    def __init__(self, count):
        self.angle = (torch.rand(count) * 2 - 1) * math.pi
        self.speed = torch.randn(count)

    def observe(self):
        return torch.stack([self.angle.cos(), self.angle.sin(), self.speed / 4.0], dim=-1)

    def step(self, action):
        torque = 3.0 * action.squeeze(-1)
        wrapped = torch.remainder(self.angle + math.pi, 2 * math.pi) - math.pi
        reward = -(wrapped ** 2 + 0.1 * self.speed ** 2 + 0.01 * torque ** 2) * 0.1
        self.speed = (self.speed + 0.1 * (5.0 * self.angle.sin() + 3.0 * torque)).clamp(-8.0, 8.0)
        self.angle = self.angle + 0.1 * self.speed
        return self.observe(), reward


class Memory:
    def __init__(self, capacity):
        self.rows = torch.zeros(capacity, 8)
        self.count = 0

    def add(self, obs, action, reward, following):
        for row in torch.cat([obs, action, reward[:, None], following], dim=-1):
            self.rows[self.count % len(self.rows)] = row
            self.count += 1

    def sample(self, count):
        rows = self.rows[torch.randint(min(self.count, len(self.rows)), (count,))]
        return rows.split([3, 1, 1, 3], dim=-1)


def mlp(inputs, outputs, hidden=48):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                         nn.Linear(hidden, outputs))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = mlp(3, 2)

    def forward(self, obs):
        mean, log_std = self.body(obs).chunk(2, dim=-1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-4.0, 1.0).exp())
        raw = normal.rsample()
        action = torch.tanh(raw)
        correction = 2.0 * (math.log(2.0) - raw - F.softplus(-2.0 * raw))
        return action, normal.log_prob(raw) - correction


class Critics(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = mlp(4, 1), mlp(4, 1)

    def forward(self, obs, action):
        pair = torch.cat([obs, action], dim=-1)
        return self.first(pair), self.second(pair)


class Agent:
    def __init__(self):
        self.actor, self.critics = Actor(), Critics()
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = torch.tensor(-1.0, requires_grad=True)
        self.critic_opt = torch.optim.Adam(self.critics.parameters(), lr=2e-3)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.alpha_opt = torch.optim.Adam([self.log_alpha], lr=3e-3)

    def update(self, obs, action, reward, following):
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            next_action, next_logp = self.actor(following)
            next_q = torch.min(*self.targets(following, next_action)) - alpha * next_logp
            target = reward + GAMMA * next_q
        q1, q2 = self.critics(obs, action)
        critic_loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
        critic_loss.backward()
        self.critic_opt.step()
        self.critic_opt.zero_grad()

        proposed, logp = self.actor(obs)
        actor_loss = (alpha * logp - torch.min(*self.critics(obs, proposed))).mean()
        actor_loss.backward()
        self.actor_opt.step()
        self.actor_opt.zero_grad()

        alpha_loss = -(self.log_alpha * (logp.detach() - 1.0)).mean()
        alpha_loss.backward()
        self.alpha_opt.step()
        self.alpha_opt.zero_grad()

        with torch.no_grad():
            for online, slow in zip(self.critics.parameters(), self.targets.parameters()):
                slow.lerp_(online, TAU)
        return critic_loss.item()


def main():
    torch.manual_seed(21)
    world, memory, agent = Pendulums(16), Memory(4000), Agent()
    obs = world.observe()
    for step in range(110):
        with torch.no_grad():
            action, _ = agent.actor(obs)
        following, reward = world.step(action)
        memory.add(obs, action, reward, following)
        obs = following
        if step >= 10:
            critic_loss = agent.update(*memory.sample(BATCH))
        if step % 20 == 19:
            alpha = agent.log_alpha.exp().item()
            print(f"step {step + 1}  reward {reward.mean():.3f}  critic {critic_loss:.4f}  alpha {alpha:.3f}")


if __name__ == "__main__":
    main()
