"""Deterministic actor-critic with a delayed actor and slowly moving targets."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

GAMMA, TAU, DELAY = 0.9, 0.02, 2


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, s):
        return torch.tanh(self.net(s))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, s, a):
        return self.net(torch.cat([s, a], dim=1)).squeeze(1)


def dynamics(s, a):
    velocity = 0.8 * s[:, 1:] + 0.4 * a
    position = (s[:, :1] + 0.3 * velocity).clamp(-2, 2)
    reward = -(position.squeeze(1) ** 2) - 0.01 * a.squeeze(1) ** 2
    return torch.cat([position, velocity], dim=1), reward


@torch.no_grad()
def move_towards(target, source):
    for t, s in zip(target.parameters(), source.parameters()):
        t.lerp_(s, TAU)


@torch.no_grad()
def rollout(actor, steps=20):
    s = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.5, 0.5]])
    total = 0.0
    for _ in range(steps):
        s, r = dynamics(s, actor(s))
        total += r.mean().item()
    return total


def main():
    torch.manual_seed(51)
    actor, critic = Actor(), Critic()
    actor_t = copy.deepcopy(actor).requires_grad_(False)
    critic_t = copy.deepcopy(critic).requires_grad_(False)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=2e-3)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=4e-3)
    print(f"before: return {rollout(actor):.2f}")
    for step in range(300):
        s = torch.cat([3 * torch.rand(64, 1) - 1.5, torch.rand(64, 1) - 0.5], dim=1)
        with torch.no_grad():
            a = (actor(s) + 0.4 * torch.randn(64, 1)).clamp(-1, 1)
            s2, r = dynamics(s, a)
            target = r + GAMMA * critic_t(s2, actor_t(s2))
        critic_loss = F.mse_loss(critic(s, a), target)
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()
        if step % DELAY == 0:
            actor_loss = -critic(s, actor(s)).mean()
            actor_opt.zero_grad()
            actor_loss.backward()
            actor_opt.step()
            move_towards(actor_t, actor)
            move_towards(critic_t, critic)
        if step % 100 == 99:
            print(f"step {step}: critic {critic_loss.item():.4f} return {rollout(actor):.2f}")


if __name__ == "__main__":
    main()
