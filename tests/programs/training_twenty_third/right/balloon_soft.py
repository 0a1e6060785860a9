"""Soft actor-critic (Haarnoja et al., 2018) with a tuned temperature: hold a balloon at its altitude."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

GAMMA, TAU, BATCH, ENVS = 0.95, 0.02, 128, 8


class Balloons:
    """ENVS balloons side by side. Leaving the corridor ends the flight; 50 steps are the time limit."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.state, self.t = self.fresh(), torch.zeros(ENVS)

    def fresh(self):
        return torch.randn(ENVS, 2, generator=self.g) * torch.tensor([1.0, 0.3])

    def step(self, burn):
        z, v = self.state.unbind(1)
        v = 0.9 * v + 0.3 * burn.squeeze(1) + 0.05 * torch.randn(ENVS, generator=self.g)
        z = z + 0.3 * v
        self.t = self.t + 1
        reward = 1.0 - z.abs() - 0.1 * v.abs()
        terminated, truncated = z.abs() > 3.0, self.t >= 50
        reached, over = torch.stack([z, v], dim=1), terminated | truncated
        self.state = torch.where(over[:, None], self.fresh(), reached)
        self.t = torch.where(over, torch.zeros(()), self.t)
        return reached, reward, terminated.float()


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, n_out))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(2, 2)

    def forward(self, obs):
        mean, log_std = self.net(obs).chunk(2, dim=1)
        dist = torch.distributions.Normal(mean, log_std.clamp(-4, 1).exp())
        raw = dist.rsample()
        # log |d tanh(u)/du| in its stable form
        correction = 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        return torch.tanh(raw), (dist.log_prob(raw) - correction).squeeze(1)


class TwinCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(3, 1), mlp(3, 1)

    def forward(self, obs, action):
        x = torch.cat([obs, action], dim=1)
        return self.q1(x).squeeze(1), self.q2(x).squeeze(1)


def train(steps=700, warmup=60):
    torch.manual_seed(4)
    env, actor, critic = Balloons(seed=5), Actor(), TwinCritic()
    target = copy.deepcopy(critic)
    log_alpha = torch.zeros((), requires_grad=True)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=2e-3)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)
    alpha_opt = torch.optim.Adam([log_alpha], lr=5e-3)
    memory, rewards = [], []
    for step in range(steps):
        obs = env.state
        with torch.no_grad():
            action = actor(obs)[0] if step >= warmup else 2 * torch.rand(ENVS, 1) - 1
        next_obs, reward, terminated = env.step(action)
        memory.extend(zip(obs, action, reward, next_obs, terminated))
        rewards.append(reward.mean().item())
        if step < warmup:
            continue

        picks = torch.randint(0, len(memory), (BATCH,)).tolist()
        o, a, r, o2, end = (torch.stack(column) for column in zip(*(memory[i] for i in picks)))
        alpha = log_alpha.exp().detach()
        with torch.no_grad():
            a2, logp2 = actor(o2)
            backup = r + GAMMA * (1 - end) * (torch.min(*target(o2, a2)) - alpha * logp2)
        q1, q2 = critic(o, a)
        critic_opt.zero_grad()
        (F.mse_loss(q1, backup) + F.mse_loss(q2, backup)).backward()
        critic_opt.step()

        new_action, logp = actor(o)
        actor_opt.zero_grad()
        (alpha * logp - torch.min(*critic(o, new_action))).mean().backward()
        actor_opt.step()

        alpha_opt.zero_grad()
        (-log_alpha * (logp.detach() - 1.0)).mean().backward()  # target entropy -1
        alpha_opt.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), critic.parameters()):
                slow.lerp_(fast, TAU)
        if step % 100 == 99:
            print(f"step {step + 1:4d}  reward {sum(rewards[-100:]) / 100:7.3f}  alpha {log_alpha.exp().item():.3f}")
    return actor, critic, rewards


if __name__ == "__main__":
    actor, critic, rewards = train()
