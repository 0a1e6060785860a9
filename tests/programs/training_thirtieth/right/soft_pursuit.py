"""Soft actor-critic with twin critics and a learned temperature: a drone follows a beacon on a line.

The temperature is adjusted towards a target entropy; episodes end by a time limit only, so values are bootstrapped
across it.
"""
import collections
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(4)

DRONES, GAMMA, TAU, TARGET_ENTROPY = 32, 0.9, 0.02, -1.0


def mlp(inputs, outputs, hidden=32):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Air:
    def reset(self):
        self.state = torch.randn(DRONES, 3) * torch.tensor([1.0, 0.3, 1.0])
        return self.state.clone()

    def step(self, thrust):
        x, v, beacon = self.state.unbind(1)
        v.mul_(0.85).add_(0.4 * thrust.squeeze(1))
        x.add_(0.4 * v)
        return self.state.clone(), -(x - beacon).abs()


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(3, 2)

    def forward(self, state):
        mean, log_std = self.net(state).chunk(2, dim=1)
        log_std = -4 + 2.5 * (torch.tanh(log_std) + 1)
        noise = torch.randn_like(mean)
        raw = mean + log_std.exp() * noise
        log_prob = -0.5 * noise.pow(2) - log_std - 0.5 * math.log(2 * math.pi)
        log_prob = log_prob - 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        return torch.tanh(raw), log_prob.squeeze(1)


class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = mlp(4, 1), mlp(4, 1)

    def forward(self, state, action):
        joint = torch.cat([state, action], dim=1)
        return self.first(joint).squeeze(1), self.second(joint).squeeze(1)


class Agent:
    def __init__(self):
        self.actor, self.critic = Actor(), Twins()
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_alpha = torch.zeros((), requires_grad=True)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=3e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-3)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=1e-2)

    def update(self, state, action, reward, following):
        alpha = self.log_alpha.detach().exp()

        with torch.no_grad():
            next_action, next_log_prob = self.actor(following)
            goal = reward + GAMMA * (torch.min(*self.target(following, next_action)) - alpha * next_log_prob)
        critic_loss = sum(F.mse_loss(value, goal) for value in self.critic(state, action))
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        self.critic.requires_grad_(False)
        new_action, log_prob = self.actor(state)
        actor_loss = (alpha * log_prob - torch.min(*self.critic(state, new_action))).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        self.critic.requires_grad_(True)

        alpha_loss = -self.log_alpha * (log_prob.detach() + TARGET_ENTROPY).mean()
        self.alpha_optimizer.zero_grad()
        alpha_loss.backward()
        self.alpha_optimizer.step()

        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(self.critic.parameters()), TAU)
        return critic_loss.item(), -log_prob.mean().item()


air, agent, memory = Air(), Agent(), collections.deque(maxlen=60)
state = air.reset()
for step in range(1, 201):
    with torch.no_grad():
        action = agent.actor(state)[0] if step > 20 else 2 * torch.rand(DRONES, 1) - 1
    following, reward = air.step(action)
    memory.append((state, action, reward, following))
    state = air.reset() if step % 20 == 0 else following
    if step > 20:
        columns = [torch.cat(column) for column in zip(*memory)]
        batch = torch.randint(len(columns[0]), (64,))
        critic_loss, entropy = agent.update(*(column[batch] for column in columns))
    if step % 40 == 0:
        print(f"step {step:4d}  critic {critic_loss:.4f}  entropy {entropy:.3f}  "
              f"alpha {agent.log_alpha.exp().item():.3f}  reward {reward.mean().item():.3f}")
