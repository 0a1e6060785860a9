"""Two-joint arm learns to reach a target with DDPG (short episodes, small nets)."""
import copy

import numpy as np
import torch
from torch import nn

torch.manual_seed(3)
rng = np.random.default_rng(3)

GAMMA, TAU, BATCH = 0.9, 0.02, 64
EPISODES, HORIZON = 50, 20


class Arm:
    """Velocity-controlled planar arm; reward is minus the distance of the tip to the goal."""

    def reset(self):
        self.q = rng.uniform(-1.0, 1.0, 2)
        angle, radius = rng.uniform(-1.5, 1.5), rng.uniform(0.8, 1.8)
        self.goal = radius * np.array([np.cos(angle), np.sin(angle)])
        return self.observe()

    def tip(self):
        a, b = self.q[0], self.q.sum()
        return np.array([np.cos(a) + np.cos(b), np.sin(a) + np.sin(b)])

    def observe(self):
        return np.concatenate([np.sin(self.q), np.cos(self.q), self.goal, self.goal - self.tip()]).astype(np.float32)

    def step(self, action):
        self.q = self.q + 0.25 * np.clip(action, -1, 1)
        return self.observe(), -np.linalg.norm(self.goal - self.tip())


def mlp(n_in, n_out, last=nn.Identity):
    return nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, n_out), last())


actor = mlp(8, 2, nn.Tanh)
critic = mlp(8 + 2, 1)
actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)


@torch.no_grad()
def soft_update(target, source):
    for t, s in zip(target.parameters(), source.parameters()):
        t.lerp_(s, TAU)


def update(batch):
    s, a, r, s2 = (torch.as_tensor(np.stack(v), dtype=torch.float32) for v in zip(*batch))

    with torch.no_grad():
        next_q = critic_target(torch.cat([s2, actor_target(s2)], dim=1)).squeeze(1)
        backup = r + GAMMA * next_q
    q = critic(torch.cat([s, a], dim=1)).squeeze(1)
    critic_loss = (q - backup).pow(2).mean()
    critic_loss.backward()
    critic_opt.step()
    critic_opt.zero_grad()

    actor_loss = -critic(torch.cat([s, actor(s)], dim=1)).mean()
    actor_loss.backward()
    actor_opt.step()
    actor_opt.zero_grad()

    soft_update(critic_target, critic)
    soft_update(actor_target, actor)
    return critic_loss.item(), actor_loss.item()


@torch.no_grad()
def test_distance(episodes=20):
    arm, final = Arm(), []
    for _ in range(episodes):
        obs = arm.reset()
        for _ in range(HORIZON):
            obs, reward = arm.step(actor(torch.from_numpy(obs)).numpy())
        final.append(-reward)
    return float(np.mean(final))


arm, memory = Arm(), []
for episode in range(EPISODES):
    obs, critic_losses = arm.reset(), []
    noise = max(0.2, 1.0 - episode / 20)
    for _ in range(HORIZON):
        with torch.no_grad():
            action = actor(torch.from_numpy(obs)).numpy()
        action = np.clip(action + noise * rng.normal(size=2), -1, 1).astype(np.float32)
        nxt, reward = arm.step(action)
        memory.append((obs, action, reward, nxt))
        obs = nxt
        if len(memory) >= 5 * BATCH:
            picks = rng.integers(0, len(memory), BATCH)
            critic_losses.append(update([memory[i] for i in picks])[0])
    if episode % 10 == 9 and critic_losses:
        print(f"episode {episode + 1:3d}  critic loss {np.mean(critic_losses):.3f}")

mean_q = critic(torch.cat([torch.from_numpy(np.stack([m[0] for m in memory[-500:]])),
                           torch.from_numpy(np.stack([m[1] for m in memory[-500:]]))], dim=1)).mean().item()
distance = test_distance()
print(f"mean distance at the end of a test episode {distance:.3f}, mean q {mean_q:.2f}")
