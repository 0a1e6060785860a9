import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

N_ENVS, HORIZON, EPISODE = 16, 40, 40
GAMMA, LAMBDA, CLIP = 0.97, 0.95, 0.2


class PointMassVec:
    """Sixteen point masses that have to be pushed to the origin and held there."""

    def __init__(self, n, seed):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros((n, 4), dtype=np.float32)
        self.clock = 0

    def observation(self):
        return torch.from_numpy(self.state)

    def reset(self):
        self.state[:, :2] = self.rng.uniform(-1.0, 1.0, (len(self.state), 2))
        self.state[:, 2:] = 0.0
        self.clock = 0
        return self.observation()

    def step(self, action):
        force = np.clip(action, -1.0, 1.0)
        self.state[:, 2:] = 0.9 * self.state[:, 2:] + 0.2 * force
        self.state[:, :2] += 0.2 * self.state[:, 2:]
        reward = -np.linalg.norm(self.state[:, :2], axis=1) - 0.01 * (force ** 2).sum(1)
        self.clock += 1
        return self.observation(), torch.from_numpy(reward.astype(np.float32)), self.clock >= EPISODE


class ActorCritic(nn.Module):
    def __init__(self, obs_dim=4, act_dim=2, width=64):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs_dim, width), nn.Tanh(), nn.Linear(width, act_dim))
        self.critic = nn.Sequential(nn.Linear(obs_dim, width), nn.Tanh(), nn.Linear(width, 1))
        self.log_std = nn.Parameter(torch.full((act_dim,), -0.5))

    def policy(self, obs):
        return Normal(self.actor(obs), self.log_std.exp())

    def value(self, obs):
        return self.critic(obs).squeeze(-1)


@torch.no_grad()
def collect(env, model):
    obs, storage = env.reset(), {"obs": [], "act": [], "logp": [], "rew": [], "val": []}
    for _ in range(HORIZON):
        dist = model.policy(obs)
        action = dist.sample()
        storage["obs"].append(obs)
        storage["act"].append(action)
        storage["logp"].append(dist.log_prob(action).sum(-1))
        storage["val"].append(model.value(obs))
        obs, reward, _ = env.step(action.numpy())
        storage["rew"].append(reward)
    batch = {k: torch.stack(v) for k, v in storage.items()}
    adv, running = torch.zeros_like(batch["rew"]), torch.zeros(N_ENVS)
    next_value = model.value(obs)
    for t in reversed(range(HORIZON)):
        delta = batch["rew"][t] + GAMMA * next_value - batch["val"][t]
        running = delta + GAMMA * LAMBDA * running
        adv[t], next_value = running, batch["val"][t]
    batch["ret"] = adv + batch["val"]
    batch["adv"] = (adv - adv.mean()) / (adv.std() + 1e-8)
    return {k: v.flatten(0, 1) for k, v in batch.items()}


def update(model, optimizer, batch, epochs=4, minibatch=160):
    total = 0.0
    for _ in range(epochs):
        for idx in torch.randperm(len(batch["adv"])).split(minibatch):
            obs, adv = batch["obs"][idx], batch["adv"][idx]
            dist = model.policy(obs)
            ratio = (dist.log_prob(batch["act"][idx]).sum(-1) - batch["logp"][idx]).exp()
            surrogate = torch.min(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv).mean()
            value_loss = (model.value(obs) - batch["ret"][idx]).pow(2).mean()
            loss = -surrogate + 0.5 * value_loss - 0.001 * dist.entropy().sum(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            total += loss.item()
    return total


torch.manual_seed(0)
env = PointMassVec(N_ENVS, seed=0)
model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
history = []
for iteration in range(60):
    batch = collect(env, model)
    loss = update(model, optimizer, batch)
    history.append(batch["rew"].mean().item())
    if iteration % 20 == 19:
        print(f"iteration {iteration + 1}: loss {loss / 16:.3f} reward per step {np.mean(history[-10:]):.3f}")
