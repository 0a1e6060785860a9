"""When should the ferry leave? Policy search with the DiCE objective (Foerster et al. 2018) and a learned baseline."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Bernoulli


@dataclass
class Config:
    envs: int = 128
    horizon: int = 24
    gamma: float = 0.97
    iters: int = 100
    lr: float = 8e-3
    critic_lr: float = 1e-2
    entropy: float = 0.01
    capacity: float = 12.0


class Harbour:
    """Passengers arrive in waves. Leaving costs fuel, waiting costs goodwill, and the boat is away for two steps."""

    def __init__(self, n, capacity, g):
        self.n, self.capacity, self.g = n, capacity, g

    def reset(self):
        self.queue = 4 * torch.rand(self.n, generator=self.g)
        self.away = torch.zeros(self.n)
        self.wave = torch.rand(self.n, generator=self.g)
        return self.observe()

    def observe(self):
        phase = 6.2832 * self.wave
        return torch.stack([self.queue / self.capacity, self.away / 2, torch.sin(phase), torch.cos(phase)], -1)

    def step(self, leave):
        go = leave * (self.away == 0).float()
        carried = go * self.queue.clamp(max=self.capacity)
        reward = 0.4 * carried - 1.2 * go - 0.04 * self.queue
        arrivals = torch.poisson(1.5 + 1.4 * torch.sin(6.2832 * self.wave), generator=self.g)
        self.queue = self.queue - carried + arrivals
        self.away = torch.where(go > 0, torch.full_like(go, 2.0), (self.away - 1).clamp(min=0))
        self.wave = (self.wave + 1 / 12) % 1
        return self.observe(), reward


def mlp(inp, out, hidden=32):
    return nn.Sequential(nn.Linear(inp, hidden), nn.Tanh(), nn.Linear(hidden, out))


def magic_box(logp):
    return torch.exp(logp - logp.detach())


def rollout(env, policy, cfg):
    obs, logps, rewards, entropies = [], [], [], []
    o = env.reset()
    for _ in range(cfg.horizon):
        dist = Bernoulli(logits=policy(o).squeeze(-1))
        a = dist.sample()
        obs.append(o)
        logps.append(dist.log_prob(a))
        entropies.append(dist.entropy())
        o, r = env.step(a)
        rewards.append(r)
    return tuple(torch.stack(v, 1) for v in (obs, logps, rewards, entropies))


def dice_objective(logps, rewards, values, gamma):
    discount = gamma ** torch.arange(rewards.shape[1])
    objective = (magic_box(logps.cumsum(1)) * discount * rewards).sum(1)
    baseline = ((1 - magic_box(logps)) * discount * values.detach()).sum(1)
    return (objective + baseline).mean()


def returns_to_go(rewards, gamma):
    out, run = torch.zeros_like(rewards), torch.zeros(len(rewards))
    for t in range(rewards.shape[1] - 1, -1, -1):
        run = rewards[:, t] + gamma * run
        out[:, t] = run
    return out


cfg = Config()
torch.manual_seed(6)
env = Harbour(cfg.envs, cfg.capacity, torch.Generator().manual_seed(6))
policy, critic = mlp(4, 1), mlp(5, 1)
opt = torch.optim.Adam(policy.parameters(), lr=cfg.lr)
critic_opt = torch.optim.Adam(critic.parameters(), lr=cfg.critic_lr)
clock = (torch.arange(cfg.horizon) / cfg.horizon).expand(cfg.envs, -1).unsqueeze(-1)
for it in range(cfg.iters):
    obs, logps, rewards, entropies = rollout(env, policy, cfg)
    values = critic(torch.cat([obs, clock], -1)).squeeze(-1)
    loss = -dice_objective(logps, rewards, values, cfg.gamma) - cfg.entropy * entropies.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    critic_loss = F.smooth_l1_loss(values, returns_to_go(rewards, cfg.gamma))
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    if it % 20 == 0 or it == cfg.iters - 1:
        print(f"iter {it:3d}  return {rewards.sum(1).mean().item():7.3f}  critic {critic_loss.item():.3f}")
