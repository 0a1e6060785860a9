"""Soft actor-critic on a batch of simulated carts that must come to rest at the origin."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)


class Carts:
    def __init__(self, count):
        self.state = torch.cat([torch.rand(count, 1) * 4 - 2, torch.randn(count, 1) * 0.3], 1)

    def step(self, action):
        pos, vel = self.state.split(1, 1)
        vel = 0.95 * vel + 0.3 * action
        pos = (pos + 0.3 * vel).clamp(-3, 3)
        self.state = torch.cat([pos, vel], 1)
        return -(pos ** 2 + 0.1 * vel ** 2 + 0.02 * action ** 2).squeeze(1), self.state


class Actor(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.mean = nn.Linear(width, 1)
        self.log_std = nn.Linear(width, 1)

    def forward(self, s):
        h = self.body(s)
        mean, log_std = self.mean(h), self.log_std(h).clamp(-4, 1)
        raw = mean + log_std.exp() * torch.randn_like(mean)
        log_p = (-0.5 * ((raw - mean) / log_std.exp()) ** 2 - log_std - 0.5 * math.log(2 * math.pi)).squeeze(1)
        log_p = log_p - (2 * (math.log(2) - raw - F.softplus(-2 * raw))).squeeze(1)
        return raw.tanh(), log_p, mean.tanh()


class Twin(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.q = nn.ModuleList(nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                             nn.Linear(width, 1)) for _ in range(2))

    def forward(self, s, a):
        x = torch.cat([s, a], 1)
        return torch.stack([q(x).squeeze(1) for q in self.q])


@torch.no_grad()
def score(actor, horizon=30):
    carts, total = Carts(128), torch.zeros(128)
    for _ in range(horizon):
        total += carts.step(actor(carts.state)[2])[0]
    return total.mean().item()


actor, critic, target = Actor(), Twin(), Twin()
target.load_state_dict(critic.state_dict())
target.requires_grad_(False)
log_alpha = torch.tensor(-1.5, requires_grad=True)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=3e-3)
alpha_opt = torch.optim.Adam([log_alpha], lr=3e-3)
memory, gamma = [], 0.95
before = score(actor)

for episode in range(36):
    carts = Carts(16)
    for t in range(30):
        with torch.no_grad():
            s = carts.state
            a = actor(s)[0]
            r, nxt = carts.step(a)
        memory.append((s, a, r, nxt))
        if len(memory) < 40:
            continue
        pick = [memory[i] for i in torch.randint(0, len(memory), (6,)).tolist()]
        s, a, r, nxt = (torch.cat(part) for part in zip(*pick))
        with torch.no_grad():
            na, nlp, _ = actor(nxt)
            goal = r + gamma * (target(nxt, na).min(0).values - log_alpha.exp() * nlp)
        critic_loss = F.mse_loss(critic(s, a), goal.expand(2, -1))
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()

        if t % 2 == 0:
            critic.requires_grad_(False)
            pa, lp, _ = actor(s)
            actor_loss = (log_alpha.detach().exp() * lp - critic(s, pa).min(0).values).mean()
            actor_opt.zero_grad()
            actor_loss.backward()
            actor_opt.step()
            critic.requires_grad_(True)
            alpha_loss = -log_alpha * (lp.detach().mean() - 1.0)
            alpha_opt.zero_grad()
            alpha_loss.backward()
            alpha_opt.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), critic.parameters()):
                slow.lerp_(fast, 0.05)

print(f"return before {before:.1f} after {score(actor):.1f}  temperature {log_alpha.exp().item():.3f}")
