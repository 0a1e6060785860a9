"""CrossQ (Bhatt et al., 2024): soft actor-critic without target networks, with batch-normalised critics."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

torch.manual_seed(2)

N_ENVS, GAMMA, BATCH, STEPS = 32, 0.95, 192, 200


class Pendulum:
    """Swing-up with N pendulums side by side; an episode never ends, one in fifty steps restarts at random."""

    def __init__(self, n):
        self.theta, self.omega = (torch.rand(n) * 2 - 1) * math.pi, torch.randn(n)

    def obs(self):
        return torch.stack([self.theta.cos(), self.theta.sin(), self.omega / 4], dim=1)

    def step(self, a):
        u = 2 * a.squeeze(1).clamp(-1, 1)
        angle = (self.theta + math.pi) % (2 * math.pi) - math.pi
        reward = -(angle ** 2 + 0.1 * self.omega ** 2 + 0.001 * u ** 2) / 8
        self.omega = (self.omega + 0.1 * (7.5 * self.theta.sin() + 4.5 * u)).clamp(-8, 8)
        self.theta = self.theta + 0.1 * self.omega
        after, again = self.obs(), torch.rand(len(u)) < 0.02
        self.theta = torch.where(again, (torch.rand(len(u)) * 2 - 1) * math.pi, self.theta)
        self.omega = torch.where(again, torch.randn(len(u)), self.omega)
        return after, reward


class Critic(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.BatchNorm1d(4, momentum=0.05), nn.Linear(4, width), nn.ReLU(),
            nn.BatchNorm1d(width, momentum=0.05), nn.Linear(width, width), nn.ReLU(),
            nn.BatchNorm1d(width, momentum=0.05), nn.Linear(width, 1))

    def forward(self, s, a):
        return self.net(torch.cat([s, a], dim=1)).squeeze(1)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, s):
        mean, log_std = self.net(s).chunk(2, dim=1)
        dist = Normal(mean, log_std.clamp(-4, 1).exp())
        raw = dist.rsample()
        squash = 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        return raw.tanh(), (dist.log_prob(raw) - squash).sum(dim=1), mean.tanh()


actor = Actor()
critics = nn.ModuleList([Critic(), Critic()])
log_alpha = torch.tensor(math.log(0.1), requires_grad=True)
opt_actor = torch.optim.Adam(actor.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_critic = torch.optim.Adam(critics.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_alpha = torch.optim.Adam([log_alpha], lr=2e-3)
env = Pendulum(N_ENVS)
replay = [torch.zeros(STEPS, N_ENVS, *shape) for shape in ((3,), (1,), (), (3,))]
critics.eval()

for step in range(STEPS):
    s = env.obs()
    with torch.no_grad():
        a = actor(s)[0] if step >= 20 else torch.rand(N_ENVS, 1) * 2 - 1
    s2, r = env.step(a)
    for column, value in zip(replay, (s, a, r, s2)):
        column[step] = value
    if step < 20:
        continue
    for _ in range(2):
        row, lane = torch.randint(step + 1, (BATCH,)), torch.randint(N_ENVS, (BATCH,))
        bs, ba, br, bs2 = (column[row, lane] for column in replay)
        with torch.no_grad():
            ba2, logp2, _ = actor(bs2)
        critics.train()  # both halves share the statistics of one joint batch
        both = [c(torch.cat([bs, bs2]), torch.cat([ba, ba2])).chunk(2) for c in critics]
        critics.eval()
        next_q = torch.min(both[0][1], both[1][1]).detach() - log_alpha.exp().detach() * logp2
        target = br + GAMMA * next_q
        critic_loss = sum(F.mse_loss(q, target) for q, _ in both)
        opt_critic.zero_grad()
        critic_loss.backward()
        opt_critic.step()
    critics.requires_grad_(False)
    pi, logp, _ = actor(bs)
    actor_loss = (log_alpha.exp().detach() * logp - torch.min(critics[0](bs, pi), critics[1](bs, pi))).mean()
    opt_actor.zero_grad()
    actor_loss.backward()
    opt_actor.step()
    critics.requires_grad_(True)
    alpha_loss = -(log_alpha * (logp.detach() - 1.0)).mean()
    opt_alpha.zero_grad()
    alpha_loss.backward()
    opt_alpha.step()
    if step % 50 == 49:
        print(f"step {step + 1}  critic {critic_loss.item():.4f}  alpha {log_alpha.exp().item():.3f}")

with torch.no_grad():
    test = Pendulum(200)
    rewards = [test.step(actor(test.obs())[2])[1] for _ in range(120)]
print(f"reward per step at the end: {torch.stack(rewards[60:]).mean().item():.3f}")
