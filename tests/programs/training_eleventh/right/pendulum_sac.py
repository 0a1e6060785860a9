"""Soft actor-critic on a batch of small pendulums; every environment step is one tensor operation."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 4
N_ENVS, HORIZON, STEPS, WARMUP, BATCH = 16, 40, 560, 40, 128
GAMMA, TAU, TARGET_ENTROPY = 0.95, 0.01, -1.0

torch.manual_seed(SEED)


def env_step(angle, speed, torque):
    """Pendulum with damping; upright is angle 0."""
    speed = 0.97 * speed + 0.15 * torch.sin(angle) + 0.3 * torque
    angle = angle + 0.3 * speed
    angle = torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
    return angle, speed, torch.cos(angle) - 0.05 * speed**2


def observe(angle, speed):
    return torch.stack([torch.cos(angle), torch.sin(angle), speed], dim=1)


def fresh(n):
    return (torch.rand(n) * 2 - 1) * math.pi, torch.randn(n) * 0.2


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, obs):
        mean, log_std = self.net(obs).chunk(2, dim=1)
        dist = torch.distributions.Normal(mean, log_std.clamp(-4, 1).exp())
        raw = dist.rsample()
        log_prob = dist.log_prob(raw) - 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        return torch.tanh(raw), log_prob.squeeze(1), torch.tanh(mean)


class TwinCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.ModuleList(nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 1)) for _ in range(2))

    def forward(self, obs, action):
        z = torch.cat([obs, action], dim=1)
        return torch.stack([q(z).squeeze(1) for q in self.q])


@torch.no_grad()
def evaluate(actor):
    (angle, speed), total = fresh(64), 0.0
    for _ in range(HORIZON):
        angle, speed, reward = env_step(angle, speed, actor(observe(angle, speed))[2].squeeze(1))
        total += reward
    return total.mean().item()


actor, critic = Actor(), TwinCritic()
slow = copy.deepcopy(critic).requires_grad_(False)
log_alpha = torch.tensor(-1.0, requires_grad=True)
actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=3e-3)
alpha_opt = torch.optim.Adam([log_alpha], lr=3e-3)

print(f"return before {evaluate(actor):.2f}")
memory = []
for step in range(STEPS):
    if step % HORIZON == 0:
        angle, speed = fresh(N_ENVS)
    obs = observe(angle, speed)
    with torch.no_grad():
        action = actor(obs)[0]
    angle, speed, reward = env_step(angle, speed, action.squeeze(1))
    memory.append((obs, action, reward, observe(angle, speed)))
    if step < WARMUP:
        continue
    picks = torch.randint(len(memory), (BATCH // N_ENVS,)).tolist()
    o, a, r, o2 = (torch.cat(parts) for parts in zip(*[memory[i] for i in picks]))
    alpha = log_alpha.exp().detach()

    with torch.no_grad():
        a2, logp2, _ = actor(o2)
        backup = r + GAMMA * (slow(o2, a2).amin(0) - alpha * logp2)  # horizons are time limits: always bootstrap
    critic_loss = (critic(o, a) - backup).pow(2).mean(1).sum()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    critic.requires_grad_(False)
    new_action, logp, _ = actor(o)
    actor_loss = (alpha * logp - critic(o, new_action).amin(0)).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    critic.requires_grad_(True)

    alpha_loss = -(log_alpha * (logp + TARGET_ENTROPY).detach()).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()
    with torch.no_grad():
        for p_slow, p in zip(slow.parameters(), critic.parameters()):
            p_slow.lerp_(p, TAU)
print(f"return after {evaluate(actor):.2f} alpha {log_alpha.exp().item():.3f} critic loss {critic_loss.item():.3f}")
