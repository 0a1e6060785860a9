"""Offline actor-critic (TD3+BC) for a planar gripper that has to reach a goal, from a logged archive."""
import copy
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    episodes: int = 250
    batch: int = 128
    steps: int = 700
    gamma: float = 0.95
    tau: float = 0.01
    seed: int = 17


def env_step(state, action):
    """state: position relative to the goal and velocity; reward: minus distance and effort."""
    pos, vel = state[:, :2], state[:, 2:]
    vel = 0.8 * vel + 0.25 * action
    pos = (pos + 0.5 * vel).clamp(-2, 2)
    reward = -pos.norm(dim=1) - 0.05 * action.square().sum(1)
    return torch.cat([pos, vel], 1), reward


def start_states(n, g):
    return torch.cat([2 * torch.rand(n, 2, generator=g) - 1, torch.zeros(n, 2)], 1)


def collect(cfg, g):
    state, rows = start_states(cfg.episodes, g), []
    for _ in range(20):
        noise = 0.5 * torch.randn(cfg.episodes, 2, generator=g)
        action = (-0.5 * state[:, :2] - 0.3 * state[:, 2:] + noise).clamp(-1, 1)
        following, reward = env_step(state, action)
        rows.append((state, action, reward, following))
        state = following
    return [torch.cat(column) for column in zip(*rows)]


def mlp(n_in, n_out, w=48):
    return nn.Sequential(nn.Linear(n_in, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU(), nn.Linear(w, n_out))


class TwinCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(6, 1), mlp(6, 1)

    def forward(self, state, action):
        sa = torch.cat([state, action], 1)
        return self.q1(sa).squeeze(-1), self.q2(sa).squeeze(-1)


@torch.no_grad()
def soft_update(target, online, tau):
    for t, o in zip(target.parameters(), online.parameters()):
        t.lerp_(o, tau)


def learn(cfg, archive, g):
    actor, critic = nn.Sequential(mlp(4, 2), nn.Tanh()), TwinCritic()
    actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for step in range(1, cfg.steps + 1):
        pick = torch.randint(len(archive[0]), (cfg.batch,), generator=g)
        state, action, reward, following = (column[pick] for column in archive)
        actor_opt.zero_grad()
        critic_opt.zero_grad()
        with torch.no_grad():
            noise = (0.2 * torch.randn(action.shape, generator=g)).clamp(-0.4, 0.4)
            next_action = (actor_target(following) + noise).clamp(-1, 1)
            target = reward + cfg.gamma * torch.min(*critic_target(following, next_action))
        q1, q2 = critic(state, action)
        critic_loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
        critic_loss.backward()
        if step % 2 == 0:
            chosen = actor(state)
            q = critic(state, chosen)[0]
            actor_loss = -2.5 * q.mean() / q.abs().mean().detach() + F.mse_loss(chosen, action)
            actor_loss.backward()
            actor_opt.step()
            soft_update(actor_target, actor, cfg.tau)
        critic_opt.step()
        soft_update(critic_target, critic, cfg.tau)
        if step % 100 == 0:
            print(f"step {step}  critic {critic_loss.item():.3f}  actor {actor_loss.item():.3f}")
    return actor, critic


@torch.no_grad()
def rollout(policy, cfg, g, n=200):
    state, total, weight = start_states(n, g), 0.0, 1.0
    for _ in range(40):
        state, reward = env_step(state, policy(state))
        total, weight = total + weight * reward, weight * cfg.gamma
    return total.mean().item()


if __name__ == "__main__":
    cfg = Settings()
    torch.manual_seed(cfg.seed)
    g = torch.Generator().manual_seed(cfg.seed)
    actor, critic = learn(cfg, collect(cfg, g), g)
    result = rollout(actor, cfg, g)
    print(f"return of the learned policy {result:.2f}")
