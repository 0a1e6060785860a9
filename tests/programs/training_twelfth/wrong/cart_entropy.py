"""Soft actor-critic (Haarnoja et al., 2018b) with automatic temperature on a batch of point masses."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)

N_ENV, HORIZON = 16, 30
GAMMA, TAU, LR = 0.95, 0.01, 1e-3
BATCH, STEPS = 128, 700
OBS, ACT = 2, 1


def mlp(n_in, n_out, width=64):
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, n_out))


def env_reset(n):
    return torch.rand(n, OBS) * 2 - 1


def env_step(s, a):
    pos, vel = s[:, :1], s[:, 1:]
    vel = (vel + 0.3 * a).clamp(-1.5, 1.5)
    pos = (pos + 0.3 * vel).clamp(-2, 2)
    reward = -0.2 * (pos ** 2 + 0.1 * vel ** 2 + 0.05 * a ** 2)
    return torch.cat([pos, vel], 1), reward


class Agent:
    def __init__(self):
        self.actor = mlp(OBS, 2 * ACT)
        self.q1, self.q2 = mlp(OBS + ACT, 1), mlp(OBS + ACT, 1)
        self.q1_target, self.q2_target = copy.deepcopy(self.q1), copy.deepcopy(self.q2)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.alpha = self.log_alpha.exp().detach()
        self.target_entropy = -float(ACT)
        self.opt_actor = torch.optim.Adam(self.actor.parameters(), lr=LR)
        self.opt_q = torch.optim.Adam([*self.q1.parameters(), *self.q2.parameters()], lr=LR)
        self.opt_alpha = torch.optim.Adam([self.log_alpha], lr=5 * LR)

    def act(self, s):
        mu, log_std = self.actor(s).chunk(2, dim=-1)
        log_std = log_std.clamp(-5, 2)
        u = mu + log_std.exp() * torch.randn_like(mu)
        log_p = -0.5 * ((u - mu) / log_std.exp()) ** 2 - log_std - 0.5 * math.log(2 * math.pi)
        log_p = log_p - 2 * (math.log(2) - u - F.softplus(-2 * u))
        return torch.tanh(u), log_p.sum(-1, keepdim=True)

    def update(self, s, a, r, s2):
        with torch.no_grad():
            a2, log_p2 = self.act(s2)
            sa2 = torch.cat([s2, a2], 1)
            q_next = torch.min(self.q1_target(sa2), self.q2_target(sa2))
            y = r + GAMMA * (q_next - self.alpha * log_p2)
        sa = torch.cat([s, a], 1)
        q_loss = F.mse_loss(self.q1(sa), y) + F.mse_loss(self.q2(sa), y)
        self.opt_q.zero_grad()
        q_loss.backward()
        self.opt_q.step()

        new_a, log_p = self.act(s)
        sa = torch.cat([s, new_a], 1)
        actor_loss = (self.alpha * log_p - torch.min(self.q1(sa), self.q2(sa))).mean()
        self.opt_actor.zero_grad()
        actor_loss.backward()
        self.opt_actor.step()

        alpha_loss = -(self.log_alpha.exp() * (log_p + self.target_entropy).detach()).mean()
        self.opt_alpha.zero_grad()
        alpha_loss.backward()
        self.opt_alpha.step()

        with torch.no_grad():
            for q, q_t in ((self.q1, self.q1_target), (self.q2, self.q2_target)):
                for p, p_t in zip(q.parameters(), q_t.parameters()):
                    p_t.lerp_(p, TAU)
        return -log_p.mean().item()


def evaluate(agent, n=256):
    s, total = env_reset(n), 0.0
    with torch.no_grad():
        for _ in range(HORIZON):
            s, r = env_step(s, agent.act(s)[0])
            total += r.mean().item()
    return total


agent, buffer = Agent(), []
state = env_reset(N_ENV)
for step in range(STEPS):
    with torch.no_grad():
        action = agent.act(state)[0]
    nxt, reward = env_step(state, action)
    buffer.append((state, action, reward, nxt))
    state = env_reset(N_ENV) if (step + 1) % HORIZON == 0 else nxt
    if step >= 10:
        rows = [buffer[i] for i in torch.randint(0, len(buffer), (BATCH // N_ENV,)).tolist()]
        entropy = agent.update(*(torch.cat(c) for c in zip(*rows)))
    if (step + 1) % 140 == 0:
        print(f"step {step + 1:4d}  entropy {entropy:6.3f}  return {evaluate(agent):8.3f}")
score = evaluate(agent, 2048)
print(f"final return {score:.3f}")
