"""DDPG with batch normalisation (Lillicrap et al., 2016) on a small point-mass task."""
import copy

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(3)
rng = np.random.default_rng(3)

GAMMA, TAU, BATCH, HORIZON = 0.95, 0.02, 128, 40


class PointMass:
    """Push a cart towards the goal; readings come in raw sensor units."""

    def reset(self):
        self.x, self.v, self.t = rng.uniform(-1, 1), 0.0, 0
        return self._obs()

    def _obs(self):
        return np.array([4.0 * self.x + 5.0, 2.0 * self.v - 3.0], dtype=np.float32)

    def step(self, a):
        a = float(np.clip(a, -1, 1))
        self.v = 0.85 * self.v + 0.15 * a
        self.x = float(np.clip(self.x + 0.3 * self.v, -2, 2))
        self.t += 1
        reward = -(self.x ** 2) - 0.02 * a * a
        return self._obs(), reward, self.t >= HORIZON


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 48), nn.BatchNorm1d(48), nn.ReLU(),
                                 nn.Linear(48, 1), nn.Tanh())

    def forward(self, s):
        return self.net(s)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(2)
        self.net = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, s, a):
        return self.net(torch.cat([self.bn(s), a], dim=1))


def soft_update(target, source):
    with torch.no_grad():
        for tp, p in zip(target.parameters(), source.parameters()):
            tp.lerp_(p, TAU)


def act(actor, s, noise=0.0):
    actor.eval()
    with torch.no_grad():
        a = actor(torch.from_numpy(s)[None]).item()
    actor.train()
    return float(np.clip(a + noise * rng.standard_normal(), -1, 1))


actor, critic = Actor(), Critic()
actor_target, critic_target = copy.deepcopy(actor).eval(), copy.deepcopy(critic).eval()
actor_target.requires_grad_(False)
critic_target.requires_grad_(False)
opt_actor = torch.optim.Adam(actor.parameters(), lr=1e-3)
opt_critic = torch.optim.Adam(critic.parameters(), lr=2e-3)

env, replay = PointMass(), []
for episode in range(22):
    s, done, total, losses = env.reset(), False, 0.0, []
    while not done:
        a = act(actor, s, noise=0.4) if episode >= 4 else rng.uniform(-1, 1)
        s2, r, done = env.step(a)
        replay.append((s, np.float32([a]), np.float32([r]), s2))  # time limit only: always bootstrap
        s, total = s2, total + r
        if len(replay) < BATCH:
            continue
        rows = rng.integers(len(replay), size=BATCH)
        bs, ba, br, bs2 = (torch.from_numpy(np.stack(c)) for c in zip(*(replay[i] for i in rows)))
        with torch.no_grad():
            y = br + GAMMA * critic_target(bs2, actor_target(bs2))
        critic_loss = nn.functional.mse_loss(critic(bs, ba), y)
        opt_critic.zero_grad()
        critic_loss.backward()
        opt_critic.step()

        actor_loss = -critic(bs, actor(bs)).mean()
        opt_actor.zero_grad()
        actor_loss.backward()
        opt_actor.step()
        soft_update(actor_target, actor)
        soft_update(critic_target, critic)
        losses.append(critic_loss.item())
    if episode % 5 == 0 or episode == 21:
        print(f"episode {episode:2d}  return {total:7.2f}  critic loss {np.mean(losses or [0]):.4f}")

scores = []
for _ in range(20):
    s, done, total = env.reset(), False, 0.0
    while not done:
        s, r, done = env.step(act(actor, s))
        total += r
    scores.append(total)
print(f"evaluation: {np.mean(scores):.2f} +- {np.std(scores):.2f}")
