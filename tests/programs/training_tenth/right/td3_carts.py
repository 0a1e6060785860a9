import copy

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

N_ENVS, GAMMA, TAU = 8, 0.95, 0.02


class ReachVec:
    """Eight carts on a line that have to be driven to zero."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros((N_ENVS, 2), dtype=np.float32)

    def reset(self):
        self.state[:, 0] = self.rng.uniform(-1, 1, N_ENVS)
        self.state[:, 1] = 0.0
        return torch.from_numpy(self.state)

    def step(self, action):
        self.state[:, 1] = 0.8 * self.state[:, 1] + 0.3 * np.clip(action[:, 0], -1, 1)
        self.state[:, 0] += 0.3 * self.state[:, 1]
        return torch.from_numpy(self.state), torch.from_numpy(-np.abs(self.state[:, 0]))


class Replay:
    def __init__(self, capacity):
        self.data = torch.zeros(capacity, 2 + 1 + 1 + 2)
        self.size = self.head = 0

    def add(self, obs, action, reward, following):
        rows = torch.cat([obs, action, reward[:, None], following], dim=1)
        self.data[self.head:self.head + len(rows)] = rows
        self.head = (self.head + len(rows)) % len(self.data)
        self.size = min(self.size + len(rows), len(self.data))

    def sample(self, n):
        return self.data[torch.randint(self.size, (n,))].split([2, 1, 1, 2], dim=1)


def mlp(inputs, outputs, *tail):
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs), *tail)


class Agent:
    def __init__(self):
        self.actor = mlp(2, 1, nn.Tanh())
        self.critics = nn.ModuleList([mlp(3, 1), mlp(3, 1)])
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critics_target = copy.deepcopy(self.critics).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critics.parameters(), lr=1e-3)

    @torch.no_grad()
    def act(self, obs, noise):
        action = self.actor(obs)
        return action.add_(noise * torch.randn_like(action)).clamp_(-1, 1)

    def update(self, batch, with_actor):
        obs, action, reward, following = batch
        with torch.no_grad():
            smooth = (0.2 * torch.randn_like(action)).clamp_(-0.5, 0.5)
            nxt = torch.cat([following, (self.actor_target(following) + smooth).clamp_(-1, 1)], dim=1)
            target = reward + GAMMA * torch.min(*(q(nxt) for q in self.critics_target))
        critic_loss = sum(F.mse_loss(q(torch.cat([obs, action], dim=1)), target) for q in self.critics)
        self.critic_opt.zero_grad(set_to_none=True)
        critic_loss.backward()
        self.critic_opt.step()
        if with_actor:
            self.critics.requires_grad_(False)
            actor_loss = -self.critics[0](torch.cat([obs, self.actor(obs)], dim=1)).mean()
            self.actor_opt.zero_grad(set_to_none=True)
            actor_loss.backward()
            self.actor_opt.step()
            self.critics.requires_grad_(True)
            with torch.no_grad():
                for online, slow in ((self.actor, self.actor_target), (self.critics, self.critics_target)):
                    torch._foreach_lerp_(list(slow.parameters()), list(online.parameters()), TAU)
        return critic_loss.item()


torch.manual_seed(0)
env, agent, replay, returns = ReachVec(0), Agent(), Replay(8000), []
for episode in range(40):
    obs, total = env.reset().clone(), 0.0
    for step in range(25):
        action = agent.act(obs, noise=0.3) if episode > 1 else torch.rand(N_ENVS, 1) * 2 - 1
        view, reward = env.step(action.numpy())
        replay.add(obs, action, reward, view)
        obs, total = view.clone(), total + reward.mean().item()
        if episode > 1:
            loss = agent.update(replay.sample(128), with_actor=step % 2 == 0)
    returns.append(total)
print(f"critic loss {loss:.4f} return {np.mean(returns[:3]):.2f} -> {np.mean(returns[-5:]):.2f}")
