"""Advantage actor-critic on a corridor: walk right to reach the reward, a batch of environments at a time."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(3)


@dataclass
class Config:
    cells: int = 8
    envs: int = 16
    rollout: int = 8
    updates: int = 160
    gamma: float = 0.95
    lr: float = 3e-3
    entropy: float = 0.02


class Corridor:
    """The right end pays 1, the left end pays 0.2; both end the episode. Moves slip with probability 0.3."""

    def __init__(self, cfg):
        self.cells, self.n = cfg.cells, cfg.envs
        self.pos = torch.randint(1, self.cells - 1, (self.n,))

    def observe(self):
        return F.one_hot(self.pos, self.cells).float()

    def step(self, action):
        slip = torch.rand(self.n) < 0.3
        self.pos = self.pos + torch.where(slip, 1 - 2 * action, 2 * action - 1)
        reward = (self.pos == self.cells - 1).float() + 0.2 * (self.pos == 0).float()
        done = (self.pos == 0) | (self.pos == self.cells - 1)
        self.pos = torch.where(done, torch.randint(1, self.cells - 1, (self.n,)), self.pos)
        return reward, done.float()


class ActorCritic(nn.Module):
    def __init__(self, cells):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(cells, 32), nn.Tanh(), nn.Linear(32, 2))
        self.critic = nn.Sequential(nn.Linear(cells, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, obs):
        return Categorical(logits=self.actor(obs)), self.critic(obs).squeeze(-1)


def rollout(env, net, cfg):
    log_probs, values, entropies, rewards, dones = [], [], [], [], []
    for _ in range(cfg.rollout):
        dist, value = net(env.observe())
        action = dist.sample()
        reward, done = env.step(action)
        log_probs.append(dist.log_prob(action))
        values.append(value)
        entropies.append(dist.entropy())
        rewards.append(reward)
        dones.append(done)
    with torch.no_grad():
        running = net(env.observe())[1]
    returns = []
    for reward, done in zip(reversed(rewards), reversed(dones)):
        running = reward + cfg.gamma * running * (1 - done)
        returns.insert(0, running)
    return torch.stack(log_probs), torch.stack(values), torch.stack(entropies), torch.stack(returns)


@torch.no_grad()
def true_return(net, cfg, cell, steps=60):
    env = Corridor(cfg)
    env.n = 512
    env.pos = torch.full((env.n,), cell)
    total, alive, discount = torch.zeros(env.n), torch.ones(env.n), 1.0
    for _ in range(steps):
        dist, _ = net(env.observe())
        reward, done = env.step(dist.sample())
        total += discount * alive * reward
        alive = alive * (1 - done)
        discount *= cfg.gamma
    return total.mean().item()


cfg = Config()
env, net = Corridor(cfg), ActorCritic(cfg.cells)
optimizer = torch.optim.Adam(net.parameters(), lr=cfg.lr)
for update in range(cfg.updates):
    log_probs, values, entropies, returns = rollout(env, net, cfg)
    advantages = returns - values
    actor_loss = -(log_probs * advantages).mean()
    critic_loss = F.mse_loss(values, returns)
    loss = actor_loss + 0.5 * critic_loss - cfg.entropy * entropies.mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    if update % 40 == 0:
        print(f"update {update:4d}  return {returns.mean().item():.3f}  entropy {entropies.mean().item():.3f}")

with torch.no_grad():
    estimates = net(torch.eye(cfg.cells))[1]
gaps = []
for cell in (2, 4, 6):
    measured = true_return(net, cfg, cell)
    gaps.append(abs(estimates[cell].item() - measured))
    print(f"cell {cell}: value {estimates[cell].item():.3f}  measured return {measured:.3f}")
