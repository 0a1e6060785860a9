"""Implicit Q-learning on a logged point-mass navigation dataset (offline RL)."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 3
GAMMA, TAU, EXPECTILE, BETA = 0.9, 0.02, 0.8, 10.0
GOAL = np.array([0.7, 0.7], dtype=np.float32)

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def env_step(pos, act):
    nxt = np.clip(pos + 0.15 * np.clip(act, -1, 1) + 0.01 * rng.standard_normal(pos.shape), -1, 1)
    nxt = nxt.astype(np.float32)
    dist = np.linalg.norm(nxt - GOAL, axis=-1).astype(np.float32)
    done = dist < 0.2
    return nxt, np.where(done, 1.0, -0.5 * dist).astype(np.float32), done.astype(np.float32)


def log_dataset(n_envs=300, horizon=40):
    pos = rng.uniform(-1, 1, (n_envs, 2)).astype(np.float32)
    rows = []
    for _ in range(horizon):
        act = rng.uniform(-1, 1, pos.shape).astype(np.float32)
        nxt, rew, done = env_step(pos, act)
        rows.append((pos, act, rew, nxt, done))
        fresh = rng.uniform(-1, 1, pos.shape).astype(np.float32)
        pos = np.where(done[:, None] > 0, fresh, nxt)
    return [torch.from_numpy(np.concatenate(c)) for c in zip(*rows)]


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, o))


class TwinQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(4, 1), mlp(4, 1)

    def both(self, s, a):
        x = torch.cat([s, a], -1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)

    def forward(self, s, a):
        return torch.min(*self.both(s, a))


def soft_update(source, target, tau):
    with torch.no_grad():
        for p, tp in zip(source.parameters(), target.parameters()):
            tp.mul_(1.0 - tau)
            tp.add(p, alpha=tau)


def evaluate(actor, episodes=200, horizon=25):
    pos = rng.uniform(-1, 0, (episodes, 2)).astype(np.float32)
    reached = np.zeros(episodes, bool)
    for _ in range(horizon):
        with torch.no_grad():
            act = torch.tanh(actor(torch.from_numpy(pos))).numpy()
        pos, _, done = env_step(pos, act)
        reached |= done > 0
    return reached.mean()


states, actions, rewards, next_states, dones = log_dataset()
critic, value, actor = TwinQ(), mlp(2, 1), mlp(2, 2)
target_critic = copy.deepcopy(critic).requires_grad_(False)
q_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
v_opt = torch.optim.Adam(value.parameters(), lr=1e-3)
pi_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)

for step in range(600):
    idx = torch.randint(len(states), (192,))
    s, a, r, s2, d = states[idx], actions[idx], rewards[idx], next_states[idx], dones[idx]

    q_t = target_critic(s, a)
    v = value(s).squeeze(-1)
    adv = q_t - v
    v_loss = (torch.where(adv > 0, EXPECTILE, 1 - EXPECTILE) * adv.pow(2)).mean()
    v_opt.zero_grad()
    v_loss.backward()
    v_opt.step()

    with torch.no_grad():
        backup = r + GAMMA * (1 - d) * value(s2).squeeze(-1)
    q1, q2 = critic.both(s, a)
    q_loss = F.mse_loss(q1, backup) + F.mse_loss(q2, backup)
    q_opt.zero_grad()
    q_loss.backward()
    q_opt.step()
    soft_update(critic, target_critic, TAU)

    weight = torch.exp(BETA * adv.detach()).clamp(max=50.0)
    pi_loss = (weight * (torch.tanh(actor(s)) - a).pow(2).sum(-1)).mean()
    pi_opt.zero_grad()
    pi_loss.backward()
    pi_opt.step()
    if (step + 1) % 200 == 0:
        print(f"step {step + 1}  v {v_loss.item():.5f}  q {q_loss.item():.5f}  pi {pi_loss.item():.3f}  V mean {v.mean().item():.3f}")

success = evaluate(actor)
print(f"success rate from the far corner: {success:.2f}")
