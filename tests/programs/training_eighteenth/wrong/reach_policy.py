"""Policy gradient with a Gaussian policy on a planar reaching task (point mass, 64 environments side by side)."""
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Independent, Normal

SEED, N_ENVS, HORIZON, GAMMA, ITERS = 3, 64, 12, 0.95, 120
torch.manual_seed(SEED)


class ReachEnv:
    """A point with velocity control has to come close to a goal; reward is the negative distance."""

    def __init__(self, n, seed):
        self.n, self.rng = n, np.random.default_rng(seed)

    def reset(self):
        self.pos = self.rng.uniform(-1, 1, (self.n, 2))
        self.goal = self.rng.uniform(-1, 1, (self.n, 2))
        return self._obs()

    def _obs(self):
        return torch.as_tensor(np.concatenate([self.pos, self.goal], 1), dtype=torch.float32)

    def step(self, action):
        self.pos = np.clip(self.pos + 0.3 * np.clip(action, -1, 1), -2, 2)
        reward = -np.linalg.norm(self.pos - self.goal, axis=1)
        return self._obs(), torch.as_tensor(reward, dtype=torch.float32)


class GaussianPolicy(nn.Module):
    def __init__(self, obs_dim=4, act_dim=2, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.mu = nn.Linear(hidden, act_dim)
        self.log_std = nn.Parameter(torch.full((act_dim,), -0.5))

    def forward(self, obs):
        mean = self.mu(self.body(obs))
        return Independent(Normal(mean, self.log_std.exp()), 1)


def rollout(env, policy):
    obs = env.reset()
    observations, log_probs, rewards = [], [], []
    for _ in range(HORIZON):
        dist = policy(obs)
        action = dist.rsample()
        log_probs.append(dist.log_prob(action))
        observations.append(obs)
        obs, reward = env.step(action.detach().numpy())
        rewards.append(reward)
    return torch.stack(observations), torch.stack(log_probs), torch.stack(rewards)


def discounted(rewards):
    out, running = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        running = rewards[t] + GAMMA * running
        out[t] = running
    return out


@torch.no_grad()
def evaluate(policy, seed=99):
    env, total = ReachEnv(256, seed), 0.0
    obs = env.reset()
    for _ in range(HORIZON):
        obs, reward = env.step(policy(obs).mean.numpy())
        total += reward.mean().item()
    return total


env = ReachEnv(N_ENVS, SEED)
policy = GaussianPolicy()
baseline = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 1))
pi_opt = torch.optim.Adam(policy.parameters(), lr=5e-3)
v_opt = torch.optim.Adam(baseline.parameters(), lr=1e-2)

start = evaluate(policy)
for it in range(ITERS):
    obs, log_probs, rewards = rollout(env, policy)
    returns = discounted(rewards)
    values = baseline(obs).squeeze(-1)
    advantage = (returns - values).detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)

    pi_loss = -(log_probs * advantage).mean()
    pi_opt.zero_grad()
    pi_loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    pi_opt.step()

    v_loss = (values - returns).pow(2).mean()
    v_opt.zero_grad()
    v_loss.backward()
    v_opt.step()
    if it % 30 == 0:
        print(f"iter {it:3d}  return {rewards.sum(0).mean():.2f}  value loss {v_loss.item():.3f}")

final = evaluate(policy)
print(f"evaluation: before {start:.2f}  after {final:.2f}")
