"""DDPG for a room heater in degrees Celsius; observations are standardised inside the networks."""
import copy

import torch
import torch.nn as nn

SEED, N_ENVS, STEPS, BATCH, GAMMA, TAU = 2, 16, 900, 128, 0.9, 0.02
torch.manual_seed(SEED)


class Room:
    def reset(self, n):
        self.temp = 17 + 6 * torch.randn(n)
        self.outside = 8 + 5 * torch.randn(n)
        self.wish = 20 + 3 * torch.randn(n)
        return self.observe()

    def observe(self):
        return torch.stack([self.temp, self.outside, self.wish], 1)

    def step(self, power):
        power = power.squeeze(1).clamp(-1, 1)
        self.temp = self.temp + 2.5 * power - 0.03 * (self.temp - self.outside) + 0.1 * torch.randn(len(power))
        reward = -(self.temp - self.wish).abs() / 3 - 0.05 * power.pow(2)
        return self.observe(), reward.clamp(min=-5)


class RunningNorm(nn.Module):
    """Standardises with statistics that are collected over everything seen in training mode."""

    def __init__(self, dim):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("var", torch.ones(dim))
        self.register_buffer("count", torch.tensor(1e-3))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                total = self.count + len(x)
                delta = x.mean(0) - self.mean
                spread = self.var * self.count + x.var(0, unbiased=False) * len(x)
                self.var.copy_((spread + delta.pow(2) * self.count * len(x) / total) / total)
                self.mean.add_(delta * len(x) / total)
                self.count.copy_(total)
        return (x - self.mean) / (self.var + 1e-4).sqrt()


def make_actor():
    return nn.Sequential(RunningNorm(3), nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1), nn.Tanh())


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = RunningNorm(3)
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, obs, action):
        return self.net(torch.cat([self.norm(obs), action], 1)).squeeze(1)


@torch.no_grad()
def soft_update(target, source):
    for t, s in zip(target.parameters(), source.parameters()):
        t.lerp_(s, TAU)


actor, critic = make_actor(), Critic()
actor_t, critic_t = copy.deepcopy(actor).eval(), copy.deepcopy(critic).eval()
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)
env, memory = Room(), []
for step in range(STEPS):
    if step % 25 == 0:
        obs = env.reset(N_ENVS)
    with torch.no_grad():
        action = (actor(obs) + 0.3 * torch.randn(N_ENVS, 1)).clamp(-1, 1)
    nxt, reward = env.step(action)
    memory.append((obs, action, reward, nxt))
    obs = nxt
    if step < 30:
        continue
    o, a, r, n = (torch.cat(x) for x in zip(*(memory[i] for i in torch.randint(len(memory), (BATCH // N_ENVS,)))))
    with torch.no_grad():
        y = (r + GAMMA * critic_t(n, actor_t(n))).clamp(-50, 0)
    critic_loss = nn.functional.mse_loss(critic(o, a), y)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    actor_loss = -critic(o, actor(o)).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    soft_update(actor_t, actor)
    soft_update(critic_t, critic)
    if step % 200 == 0:
        print(f"step {step}  critic loss {critic_loss.item():.3f}  mean Q {-actor_loss.item():.2f}")

actor.eval()
test, score = Room(), 0.0
obs = test.reset(256)
for _ in range(25):
    obs, reward = test.step(actor(obs).detach())
    score += reward.mean().item() / 25
print(f"mean reward of the learned controller: {score:.3f}")
