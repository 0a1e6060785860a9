"""PPO with auxiliary value distillation (in the manner of PPG) for placing promotions on a kiosk screen."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, kl_divergence

SEED = 8
OBS, ACTIONS, HORIZON, ENVS = 8, 4, 32, 32
GAMMA, LAM, CLIP = 0.95, 0.9, 0.2


class Kiosks:
    """Shoppers have a slowly moving taste; showing the same promotion again wears it out."""

    def __init__(self, rng):
        self.rng = rng
        self.taste = rng.normal(size=(ENVS, ACTIONS))
        self.wear = np.zeros((ENVS, ACTIONS))

    def obs(self):
        return torch.tensor(np.concatenate([self.taste, self.wear], axis=1), dtype=torch.float32)

    def step(self, action):
        rows = np.arange(ENVS)
        reward = self.taste[rows, action] - 1.2 * self.wear[rows, action]
        self.wear *= 0.7
        self.wear[rows, action] += 1.0
        self.taste = 0.9 * self.taste + 0.45 * self.rng.normal(size=self.taste.shape)
        return torch.tensor(reward, dtype=torch.float32)


class Agent(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(OBS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.pi = nn.Linear(width, ACTIONS)
        self.value = nn.Linear(width, 1)
        self.aux_value = nn.Linear(width, 1)
        nn.init.zeros_(self.pi.weight)

    def forward(self, obs):
        h = self.trunk(obs)
        # in the policy phase the value must not shape the trunk; that is left to the auxiliary phase
        return Categorical(logits=self.pi(h)), self.value(h.detach()).squeeze(-1), self.aux_value(h).squeeze(-1)


@torch.no_grad()
def rollout(agent, env):
    obs, actions, logps, values, rewards = [], [], [], [], []
    for _ in range(HORIZON):
        o = env.obs()
        dist, v, _ = agent(o)
        a = dist.sample()
        obs.append(o), actions.append(a), logps.append(dist.log_prob(a)), values.append(v)
        rewards.append(env.step(a.numpy()))
    values.append(agent(env.obs())[1])
    adv, running = [], torch.zeros(ENVS)
    for t in reversed(range(HORIZON)):
        running = rewards[t] + GAMMA * values[t + 1] - values[t] + GAMMA * LAM * running
        adv.append(running)
    adv = torch.stack(adv[::-1])
    returns = adv + torch.stack(values[:-1])
    parts = (torch.stack(obs), torch.stack(actions), torch.stack(logps), adv, returns)
    return [p.flatten(0, 1) for p in parts], torch.stack(rewards).mean().item()


def policy_phase(agent, opt, data, epochs=3):
    for _ in range(epochs):
        for idx in torch.randperm(len(data[0])).split(256):
            obs, act, old_logp, adv, ret = (d[idx] for d in data)
            dist, v, _ = agent(obs)
            ratio = (dist.log_prob(act) - old_logp).exp()
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            gain = torch.minimum(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv).mean()
            loss = -gain - 0.01 * dist.entropy().mean() + 0.5 * F.mse_loss(v, ret)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
            opt.step()


def auxiliary_phase(agent, opt, obs, returns, epochs=3):
    before = copy.deepcopy(agent).requires_grad_(False)
    for _ in range(epochs):
        for idx in torch.randperm(len(obs)).split(512):
            dist, v, aux = agent(obs[idx])
            keep = kl_divergence(before(obs[idx])[0], dist).mean()
            loss = 0.5 * F.mse_loss(aux, returns[idx]) + keep + 0.5 * F.mse_loss(v, returns[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()


torch.manual_seed(SEED)
agent, env = Agent(), Kiosks(np.random.default_rng(SEED))
opt = torch.optim.Adam(agent.parameters(), lr=3e-3)
opt_aux = torch.optim.Adam(agent.parameters(), lr=5e-4)
kept = []
for it in range(37):
    data, mean_reward = rollout(agent, env)
    policy_phase(agent, opt, data)
    kept.append((data[0], data[4]))
    if len(kept) == 4:
        auxiliary_phase(agent, opt_aux, *(torch.cat(p) for p in zip(*kept)))
        kept.clear()
    if it % 12 == 0:
        print(f"iteration {it:2d}  mean reward {mean_reward:.3f}")
