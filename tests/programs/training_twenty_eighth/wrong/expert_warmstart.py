"""A lane-keeping driver: first cloned from an expert, then improved by policy gradients with a learned value."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

STEER = torch.tensor([-0.4, -0.15, 0.0, 0.15, 0.4])


class Road:
    """Cars on a winding road. Observed: offset, heading, curvature ahead and speed."""

    def __init__(self, count):
        self.count = count

    def reset(self):
        self.offset = torch.randn(self.count) * 0.6
        self.heading = torch.randn(self.count) * 0.2
        self.curve = torch.randn(self.count) * 0.1
        self.speed = 0.8 + 0.4 * torch.rand(self.count)
        return self.observe()

    def observe(self):
        return torch.stack([self.offset, 3 * self.heading, 5 * self.curve, self.speed], 1)

    def step(self, action):
        self.heading = self.heading + STEER[action] - self.curve
        self.offset = (self.offset + self.speed * self.heading).clamp(-4, 4)
        self.heading = self.heading.clamp(-1, 1)
        self.curve = 0.8 * self.curve + 0.06 * torch.randn(self.count)
        return self.observe(), 1.0 - self.offset.abs() - 0.3 * self.heading.abs()

    def expert(self):
        wish = self.curve - 0.8 * self.heading - 0.25 * self.offset
        return (wish.unsqueeze(1) - STEER).abs().argmin(1)


class Driver(nn.Module):
    def __init__(self, obs_dim=4, actions=5, hidden=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.pi = nn.Linear(hidden, actions)

    def forward(self, obs):
        return self.pi(self.trunk(obs))


class Cloner(nn.Module):
    def __init__(self, driver):
        super().__init__()
        self.driver = driver

    def forward(self, obs, labels):
        return F.cross_entropy(self.driver(obs), labels, label_smoothing=0.05)


class DriverWithValue(Driver):
    def __init__(self, obs_dim=4, actions=5, hidden=48):
        super().__init__(obs_dim, actions, hidden)
        self.vf = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.trunk(obs)
        return self.pi(h), self.vf(h).squeeze(-1)


def collect_demonstrations(steps=40, count=64):
    road, demos = Road(count), []
    obs = road.reset()
    for _ in range(steps):
        action = road.expert()
        demos.append((obs, action))
        obs, _ = road.step(torch.where(torch.rand(count) < 0.2, torch.randint(5, (count,)), action))
    return [torch.cat(parts) for parts in zip(*demos)]


def clone(path, steps=200):
    obs, labels = collect_demonstrations()
    cloner = Cloner(Driver())
    optimizer = torch.optim.Adam(cloner.parameters(), lr=3e-3)
    for step in range(steps):
        idx = torch.randint(len(obs), (128,))
        loss = cloner(obs[idx], labels[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"cloning loss {loss.item():.3f}")
    torch.save({"step": steps, "model": cloner.state_dict()}, path)


def improve(path, updates=30, horizon=15, count=32, gamma=0.9):
    agent = DriverWithValue()
    checkpoint = torch.load(path)
    agent.load_state_dict(checkpoint["model"], strict=False)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
    road, curve = Road(count), []
    for update in range(updates):
        obs, logps, values, rewards = road.reset(), [], [], []
        for _ in range(horizon):
            logits, value = agent(obs)
            dist = Categorical(logits=logits)
            action = dist.sample()
            obs, reward = road.step(action)
            logps.append(dist.log_prob(action))
            values.append(value)
            rewards.append(reward)
        running, returns = agent(obs)[1].detach(), []
        for reward in reversed(rewards):
            running = reward + gamma * running
            returns.insert(0, running)
        logps, values, returns = torch.stack(logps), torch.stack(values), torch.stack(returns)
        loss = -(logps * (returns - values.detach())).mean() + 0.5 * F.mse_loss(values, returns)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(torch.stack(rewards).sum(0).mean().item())
        if update % 10 == 9:
            print(f"update {update + 1:3d}  return {sum(curve[-10:]) / 10:7.3f}  loss {loss.item():.3f}")
    return agent, curve


if __name__ == "__main__":
    torch.manual_seed(7)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "driver.pt")
        clone(path)
        agent, curve = improve(path)
