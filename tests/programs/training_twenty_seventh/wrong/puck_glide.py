"""Imitation of a scripted pusher: a puck on ice has to be brought to rest on a target (behaviour cloning + DAgger)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DT, HORIZON = 0.1, 30


class PuckEnv:
    """Observation: position (2), velocity (2), target (2)."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros(6, dtype=np.float32)
        self.steps = 0

    def reset(self):
        self.steps = 0
        self.state = np.concatenate([
            self.rng.uniform(-1, 1, 2), self.rng.normal(0, 0.3, 2), self.rng.uniform(-1, 1, 2)
        ]).astype(np.float32)
        return self.state

    def step(self, action):
        force = np.clip(action, -3.0, 3.0)
        self.state[2:4] += DT * (force - 0.1 * self.state[2:4])
        self.state[0:2] += DT * self.state[2:4]
        self.steps += 1
        distance = float(np.linalg.norm(self.state[0:2] - self.state[4:6]))
        return self.state, -distance, self.steps >= HORIZON


def expert(obs):
    return (2.5 * (obs[4:6] - obs[0:2]) - 2.2 * obs[2:4]).astype(np.float32)


class Policy(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.head = nn.Linear(hidden, 2)

    def forward(self, obs):
        return self.head(self.body(obs))

    @torch.no_grad()
    def act(self, obs):
        return self(torch.as_tensor(obs)).numpy()


class Demonstrations:
    def __init__(self):
        self.obs, self.actions = [], []

    def add(self, obs, action):
        self.obs.append(torch.as_tensor(obs, dtype=torch.float32))
        self.actions.append(torch.as_tensor(action, dtype=torch.float32))

    def tensors(self):
        return torch.stack(self.obs), torch.stack(self.actions)


def collect(env, demos, episodes, policy=None, beta=1.0):
    """Roll out a mixture of expert and learner; every visited state is labelled by the expert."""
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            label = expert(obs)
            use_expert = policy is None or env.rng.random() < beta
            action = label if use_expert else policy.act(obs)
            demos.add(obs, label)
            obs, _, done = env.step(action)


def fit(policy, opt, demos, epochs, batch=128):
    obs, actions = demos.tensors()
    for _ in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(obs)).split(batch):
            loss = F.mse_loss(policy(obs[idx]), actions[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
    return total / len(obs)


def evaluate(act, episodes=30, seed=99):
    env, finals = PuckEnv(seed), []
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            obs, reward, done = env.step(act(obs))
        finals.append(-reward)
    return float(np.mean(finals))


torch.manual_seed(0)
env, demos, policy = PuckEnv(5), Demonstrations(), Policy()
opt = torch.optim.Adam(policy.parameters(), lr=2e-3)
collect(env, demos, episodes=40)
for it in range(5):
    loss = fit(policy, opt, demos, epochs=12)
    final = evaluate(policy.act)
    print(f"dagger {it}  samples {len(demos.obs):5d}  bc loss {loss:.4f}  final distance {final:.3f}")
    collect(env, demos, episodes=15, policy=policy, beta=0.5 ** (it + 1))
print(f"expert final distance {evaluate(expert):.3f}")
